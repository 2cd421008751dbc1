//! The ground of programs beside Envoy. Envoy sends them requests over a Unix socket. If such a program closes a connection
//! without a response, Envoy repeats the request past it. So every fault of such a program costs time alone. [`sandbox`] takes
//! from it the rights that it does not use.

mod end;
mod message;
pub mod sandbox;
mod serve;

use std::io::Write;

pub use end::asked_to_end;
pub use message::{fields, without_hop_by_hop};
pub use serve::{ACCEPT_PAUSE, Options, listen, serve};

/// The most fields of a message. Requests between Envoy's hops have fewer (`inner_header_fields`). A response may have
/// more: then a program gives no response, and Envoy asks the origin itself.
pub const MOST_FIELDS: usize = 256;

/// Writes a line of `program` to the standard error, for its supervisor. If nobody reads it any more, the program serves on.
pub fn line(program: &str, text: &str) {
    let _ = writeln!(std::io::stderr(), "{program}: {text}");
}
