//! The questions about HTTP that several parts must answer alike, each answered in one place.
//!
//! The crate is pure: values in, values out. It knows neither Envoy nor files, and it has one clock: the caller's.
//!
//! | module | question |
//! |---|---|
//! | [`addresses`] | Which addresses may no client reach through the proxy? |
//! | [`fields`] | Which values does this header list hold? |
//! | [`client`] | Which address has the client of a connection? |
//! | [`cache_control`] | What does `Cache-Control` say? |
//! | [`shareable`] | May any client have this response? |
//! | [`navigation`] | Is this a page load, and does its reader want more than the page? |
//! | [`object_request`] | What does a browser send for an object of a page? |
//! | [`labels`] | How is an enum of reasons written in metrics? |

pub mod addresses;
pub mod cache_control;
pub mod client;
pub mod fields;
pub mod labels;
pub mod navigation;
pub mod object_request;
pub mod shareable;

pub use fields::Fields;
pub use shareable::{Freshness, Purpose, Unshared, shareable};
