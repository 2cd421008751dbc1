//! The filter's configuration as written: JSON that `longhaul render` produces and Envoy delivers.
//!
//! The writer and the reader share one type, so that they cannot disagree. Unknown keys are refused: a misspelt limit
//! that is silently ignored is worse than none.

use page_scanner::Limits;
use serde::{Deserialize, Serialize};
use url_mapping::Level;

/// The configuration as written. [`Plan`](crate::plan::Plan) is its checked and compiled form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The targets of moved URLs. If both lists are empty, no URL moves.
    pub targets: Targets,
    /// The targets for pages of clients that connect over IPv6. None: `targets` serve all clients. A client of one family
    /// may have no route to a target of the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6_targets: Option<Targets>,
    /// Every authority of the proxy itself, including all targets.
    pub own: Vec<String>,
    /// The URLs that may move.
    pub level: Level,
    /// Suffixes of hosts that are left unchanged.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Ports of origins that clients may request through the proxy.
    pub ports: Vec<u16>,
    /// Fields under `x-longhaul-` that requests keep, because the proxy at the other end of the link has set them. The
    /// filter removes all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peer_fields: Vec<String>,
    /// True if the proxy prefetches a page's moved objects into its cache while the page passes. This crate does not
    /// read it.
    #[serde(default)]
    pub prefetch: bool,
    /// True if the filter leads requests past the cache whose responses were not stored lately. This crate does not read it.
    #[serde(default)]
    pub bypass: bool,
    /// Bounds of one page. Each has a default.
    #[serde(default)]
    pub limits: Limits,
    /// True if the filter leaves an account of each page for the proxy's access log. Each field of the account costs a
    /// host call.
    #[serde(default)]
    pub account: bool,
}

/// Authorities (`HOST` or `HOST:PORT`) that moved URLs point to. Several of one kind are shards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Targets {
    /// Authorities for https. An https object moves only to one of these, and http objects prefer them.
    pub https: Vec<String>,
    /// Authorities for http. Only http objects move here, and only if there is no https target.
    pub http: Vec<String>,
    /// Addresses to which the page must have come. Empty: any. Browsers keep a page at a public address from loading objects
    /// at a private one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only_at: Vec<String>,
}
