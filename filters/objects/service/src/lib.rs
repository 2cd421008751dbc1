//! `longhaul-objects`: a cache of objects between Envoy's outer hop and origins.
//!
//! | module | job |
//! |---|---|
//! | `cache` | one request: stored, on its way, or from the origin |
//! | `fetch` | a request to the origin, and the storage of its response |
//! | `fill` | a response that is being stored, and its readers |
//! | `request`, `reply`, `body` | messages |
//! | `origin` | connections to Envoy's socket for origins |
//! | `private` | URLs whose responses belong to one client each |
//! | `metrics`, `outcome` | counters, and the ways in which a request ends |
//!
//! `object_rules` decides what may be stored and reused. `object_store` keeps it in files.

mod body;
mod cache;
mod fetch;
mod fill;
mod metrics;
mod origin;
mod outcome;
mod private;
mod reply;
mod request;

pub use cache::Cache;
pub use origin::Unanswered;
pub use outcome::Outcome;

/// The name in log lines.
pub const PROGRAM: &str = "longhaul-objects";
