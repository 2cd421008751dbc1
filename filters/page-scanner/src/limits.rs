//! Every bound a body can run into, by name. Beyond one, the rest of that body (or that one URL) passes untouched.
//!
//! Foreign bytes decide how much work and memory they cost; these numbers decide how much they get.

use serde::{Deserialize, Serialize};

/// The bounds of one body, as the operator may set them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Memory one body may hold while it streams through: what is held back, the parser's buffers and its stack of open
    /// elements. A page that needs more is passed on untouched from there.
    pub page_memory_bytes: usize,
    /// The longest reference that is looked at, in bytes as written. A longer one is left alone.
    pub url_bytes: usize,
    /// Candidates looked at in one `srcset`. The attribute is left alone if it holds more.
    pub srcset_candidates: usize,
    /// How deep markup inside markup (`noscript`) is followed.
    pub nesting: usize,
    /// How much longer a body may become, in bytes.
    pub output_growth_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            page_memory_bytes: 256 * 1024,
            url_bytes: 8 * 1024,
            srcset_candidates: 256,
            nesting: 4,
            output_growth_bytes: 8 * 1024 * 1024,
        }
    }
}
