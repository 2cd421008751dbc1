//! The streams of the bundling filter. They pass proxy-wasm callbacks to `page_flights` and `pipe_encoding`, and do nothing
//! else.
//!
//! One callback makes one call into an end, which returns a value; this crate applies it. No `if` in this crate
//! concerns URLs, headers or bytes; `filters/README.md` gives the reason.
//!
//! Each end of the link has a module of its own, and this crate has the code of both. A module contains what its end
//! reaches.
//!
//! | module | callbacks |
//! |---|---|
//! | `root` | configuration, ticks, responses to the filter's own requests |
//! | `remote`, `ground` | requests and responses at either end |
//! | `encoding` | the body of a response, decoded at the remote |
//! | `delta` | a page at the ground, encoded as a delta |
//! | `worker` | state that all streams of a worker share; carries out the decisions of an end |
//! | `counters` | metrics for Prometheus |

mod counters;
mod delta;
mod encoding;
mod ground;
mod remote;
mod root;
mod worker;

pub use root::{Ground, Remote};
