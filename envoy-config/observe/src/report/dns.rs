//! The state of the resolvers in the report of a run.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The state of the resolvers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsReport {
    /// The resolvers that are watched, in the order of the file. Empty at a remote.
    pub resolvers: Vec<ResolverReport>,
    /// True if queries of clients and of Envoy came and every one of them failed.
    pub every_query_fails: bool,
    /// True if a client looked up a public resolver over https or TLS within the last ten minutes.
    #[serde(default)]
    pub asks_others: bool,
}

/// The state of one resolver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolverReport {
    /// The resolver.
    pub address: SocketAddr,
    /// True if it responds, with whatever result.
    pub up: bool,
    /// True if it asks this box for what this box asks it.
    #[serde(default)]
    pub loops: bool,
}
