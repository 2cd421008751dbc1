//! Reads the access log that `longhaul run --access-log` writes, and says it in words.
//!
//! `templates/part/access_log.yaml.j2` is the format, METRICS.md describes it. Unknown fields are ignored, so that a log
//! of another version can be read, too.

mod follow;
mod output;
mod request;
mod summary;
mod words;

pub(crate) use request::counts;
pub use {
    follow::{Follower, LogError},
    output::{Choice, Output},
};
