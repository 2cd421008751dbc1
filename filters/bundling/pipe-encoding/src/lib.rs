//! Content encodings of http bodies between the two ends of a pair. Pure: no I/O, no clock.
//!
//! Browsers do not accept br over http, but br takes fewer bytes than gzip. So the remote adds [`TAKES_FIELD`] to a
//! request. The ground then compresses the response with br. The remote decompresses it for a client that does not
//! accept br.
//!
//! Laws, each with a property test:
//! - The decompressed body is the same for any split of the compressed one.
//! - Of a damaged or truncated body, the client gets correct bytes, then an error. It never looks complete.
//! - One call returns at most [`limits::BYTES_AT_ONCE`], and one worker holds at most [`limits::MOST_WINDOW_BYTES`] of
//!   windows.
//!
//! | module | job |
//! |---|---|
//! | `delta` | a page as a difference from another page of its site |
//! | `decoder` | br, as it streams by or whole |
//! | `events` | counted events, and the treatments of a body |
//! | `exchange` | one request and its response at the remote |
//! | `fields` | header fields of a decompressed response |
//! | `limits` | all bounds, by name |

mod decoder;
pub mod delta;
mod events;
mod exchange;
mod fields;
pub mod limits;

pub use decoder::{Broken, Windows, decode};
pub use events::{Body, Event};
pub use exchange::{Exchange, Response};
pub use fields::edits;
pub use http_semantics::accept_encoding as accept;
pub use http_semantics::content_encoding::{codings, is_br};

/// The request field by which a remote says which content encodings it decompresses, beside those that the client
/// accepts.
pub const TAKES_FIELD: &str = "x-longhaul-takes";
/// The value of [`TAKES_FIELD`].
pub const TAKES: &str = "br";
