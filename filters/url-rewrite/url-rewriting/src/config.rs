//! The filter's configuration as written: JSON, delivered by Envoy, produced by `longhaul render`.
//!
//! One type for the writer and the reader, so that they cannot disagree. Unknown keys are refused: a misspelt limit that
//! is silently ignored is worse than none.

use page_scanner::Limits;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use url_mapping::Level;

/// The configuration as written. [`Plan`](crate::plan::Plan) is the same, checked and compiled.
///
/// `Inline` is a section of another crate, which reads two keys of its own here: this crate only lets them pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config<Inline = IgnoredAny> {
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
    /// Whether a page's moved objects are fetched into the proxy's cache while the page passes. Not read here.
    #[serde(default)]
    pub prefetch: bool,
    /// What may be put into pages of the objects that were fetched ahead; nothing where it is missing. Not read here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inline: Option<Inline>,
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
