//! HTTP semantics that several parts share, each rule in one place.
//!
//! The crate is pure: it takes values and returns values. It knows neither Envoy nor files, and its callers pass the
//! time.
//!
//! | module | question |
//! |---|---|
//! | [`addresses`] | Which addresses may no client reach through the proxy? |
//! | [`authority`] | Where does a host end and its port begin, and which address is it? |
//! | [`fields`] | Which values does this header list hold? |
//! | [`edited`] | Which values does it hold after these edits? |
//! | [`cache_control`] | How long is this response fresh? |
//! | [`mod@shareable`] | May any client have this response? |
//! | [`navigation`] | Is this request a page load, and does it rule out prefetching? |
//! | [`object_request`] | What does a browser send for an object of a page? |
//! | [`media_type`] | Which kind of object does `Content-Type` name? |
//! | [`body_fields`] | Which fields describe a body, and which of them are untrue after a change? |
//! | [`accept_encoding`] | Which content encodings does a client accept, and which of them may an origin use? |
//! | [`content_encoding`] | Which bodies are worth a content encoding, and which may the cache hold in one? |
//! | [`site`] | Which requests belong to one site? |
//! | [`labels`] | How is an enum of reasons written in metrics? |

pub mod accept_encoding;
pub mod addresses;
pub mod authority;
pub mod body_fields;
pub mod cache_control;
pub mod content_encoding;
mod edit;
pub mod fields;
pub mod labels;
pub mod media_type;
pub mod navigation;
pub mod object_request;
mod reply;
pub mod shareable;
pub mod site;

pub use edit::{Edit, edited};
pub use fields::{FieldList, Fields};
pub use reply::Reply;
pub use shareable::{Freshness, Purpose, Unshared, shareable};
