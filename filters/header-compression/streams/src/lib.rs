//! The header-compression filter. It passes the callbacks of a host to `header_codec` and does nothing else.
//!
//! One callback makes one call into an end of the codec, which returns a `Treatment`; this crate applies it. No `if` in
//! this crate concerns headers; `filters/README.md` gives the reason.
//!
//! | module | callbacks |
//! |---|---|
//! | `root` | configuration |
//! | `shared` | state that all streams of a worker share |
//! | `stream` | requests and responses |
//! | `counters` | metrics for Prometheus |

mod counters;
mod root;
mod shared;
mod stream;

pub use root::Worker as HeaderCompression;
