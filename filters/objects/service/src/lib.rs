//! `longhaul-objects`: a cache of objects between Envoy's outer hop and origins.
//!
//! | module | job |
//! |---|---|
//! | `cache` | one request: stored, on its way, or from the origin; `cache/shared` has requests to origins that clients share |
//! | `fetch` | a request to the origin, and the storage of its response |
//! | `fill` | a response that is being stored, and its readers |
//! | `sliced` | objects in blocks: who reads what, and which blocks are on their way |
//! | `run`, `receive`, `asker` | blocks that one request to the origin brings |
//! | `reading` | a reader of blocks |
//! | `request`, `reply`, `body`, `source` | messages |
//! | `origin` | connections to Envoy's socket for origins |
//! | [`sandbox`] | what the program gives up before it reads a request |
//! | `metrics` | counters |
//!
//! `object_rules` decides what may be stored and reused. `object_store` keeps it in files.

mod asker;
mod body;
mod cache;
mod fetch;
mod fill;
mod metrics;
mod origin;
mod reading;
mod receive;
mod reply;
mod request;
mod run;
pub mod sandbox;
mod sliced;
mod source;

pub use cache::Cache;
pub use origin::Unanswered;

/// The name in log lines.
pub const PROGRAM: &str = "longhaul-objects";
