//! `cache.parent`: the caching proxies, each of which keeps a part of all URLs.

use std::net::SocketAddr;

use longhaul_config::Cache;
use serde::Serialize;

use super::Socket;

/// The most proxies that are tried for one request. More would keep a client waiting for a failure.
const MOST_ATTEMPTS: usize = 4;

/// The caching proxies, at least one.
#[derive(Debug, Serialize)]
pub(super) struct Parents {
    nodes: Vec<Node>,
    /// The retries of a request whose proxy did not respond. A retry goes to another one, if there is another.
    retries: usize,
}

#[derive(Debug, Serialize)]
struct Node {
    socket: Socket,
    /// The value of `Host` in requests to the proxy itself (RFC 9110 section 7.2).
    authority: String,
}

impl Parents {
    /// Returns None without a parent.
    pub(super) fn of(cache: &Cache) -> Option<Self> {
        match cache {
            Cache::Off | Cache::Disk { .. } => None,
            Cache::Parents(parents) => Some(Self::new(parents)),
        }
    }

    fn new(parents: &[SocketAddr]) -> Self {
        let node = |socket: &SocketAddr| Node { socket: (*socket).into(), authority: socket.to_string() };
        // The only proxy is tried twice: it may have closed an idle connection just as Envoy used it.
        let attempts = parents.len().clamp(2, MOST_ATTEMPTS);
        Self { nodes: parents.iter().map(node).collect(), retries: attempts - 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_tried_at_each_of_a_few_proxies_and_twice_at_the_only_one() {
        let retries = |count: u16| {
            let parents: Vec<SocketAddr> = (1..=count).map(|port| ([192, 0, 2, 7], port).into()).collect();
            Parents::new(&parents).retries
        };
        assert_eq!([1, 2, 3, 4, 5, 50].map(retries), [1, 1, 2, 3, 3, 3]);
    }
}
