//! Reads the access log that `longhaul run --access-log` writes, and says it in words.
//!
//! `templates/part/access_log.yaml.j2` is the format, METRICS.md describes it. Unknown fields are ignored, so that a log
//! of another version can be read, too.

mod follow;
mod request;
mod summary;
mod words;

pub use follow::{Follower, LogError};
pub use request::counts;
pub use request::{Hop, Page, Request};
pub use summary::{Summary, Times};
pub use words::{Part, SlowPart};
