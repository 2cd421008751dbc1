//! Reads the access log of `log.access`, and says it in words.
//!
//! `templates/part/access_log.yaml.j2` is the format, METRICS.md describes it. Unknown fields are ignored, so that a log
//! of another version can be read, too.

mod follow;
mod joined;
mod output;
mod request;
mod summary;
mod who;
mod words;

pub use {
    follow::Follower,
    output::{Choice, Output},
};
pub(crate) use {request::counts, words::bytes as bytes_in_words};
