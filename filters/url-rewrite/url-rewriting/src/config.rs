//! The filter's configuration as written: JSON, delivered by Envoy, produced by `longhaul render`.
//!
//! One type for the writer and the reader, so that they cannot disagree. Unknown keys are refused: a misspelt limit that
//! is silently ignored is worse than none.

use crate::limits::Limits;
use serde::{Deserialize, Serialize};
use url_mapping::Level;

/// The configuration as written. [`Plan`](crate::plan::Plan) is the same, checked and compiled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where moved URLs point to. Both lists may be empty: then nothing is moved.
    pub targets: Targets,
    /// Every authority that is the proxy itself, all targets included.
    pub own: Vec<String>,
    /// How much is moved.
    pub level: Level,
    /// Host suffixes that are never touched.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Ports of origins that may be asked for through the proxy.
    pub ports: Vec<u16>,
    /// Whether a page's moved objects are fetched into the proxy's cache while the page passes.
    #[serde(default)]
    pub prefetch: bool,
    /// What may be put into pages of the objects that were fetched ahead; nothing where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline: Option<Budget>,
    /// Bounds of one page; each has a default.
    #[serde(default)]
    pub limits: Limits,
    /// Whether an account of each page is left for the proxy's access log. Each word of it is a call to the host.
    #[serde(default)]
    pub account: bool,
}

/// Authorities (`HOST` or `HOST:PORT`) that moved URLs point to; several of a kind are shards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Targets {
    /// Reached over https. An https object moves to one of these only; http objects prefer them.
    pub https: Vec<String>,
    /// Reached over http. Only http objects move here, and only if there is no https target.
    pub http: Vec<String>,
}

/// Bytes that inlining may spend, from the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// The largest object that is put into a page, as its origin sent it, unpacked.
    pub object_bytes: usize,
    /// By how much a page may grow by what is put into it.
    pub page_bytes: usize,
}
