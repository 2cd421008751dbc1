//! The program as Envoy sees it: real processes, an origin that the test plays, and clients on the program's socket.
//!
//! No test waits for a response to become stale: the origin sends it with an `Age`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    reason = "the common parts of tests are no tests themselves"
)]

mod bed;
mod client;
mod faults;
mod fills;
mod hits;
mod lives;
mod origin;
mod ranges;
mod sharing;
mod validation;
