//! Sums requests up by client, or by remote at a ground.

use std::collections::BTreeMap;

use serde::Serialize;

use super::request::{Hop, Request};
use super::words;

/// The clients that are counted apart. The rest is counted together, so that memory is bounded.
const MOST_CLIENTS: usize = 10_000;
/// The row of all further clients, and of lines without an address.
const OTHERS: &str = "others";

/// The use of the box by each client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Who {
    clients: BTreeMap<String, Use>,
}

/// The use of the box by one client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Use {
    /// The client, as the log has its address.
    pub client: String,
    /// Its requests.
    pub requests: u64,
    /// Its connections that passed unread.
    pub connections: u64,
    /// The bytes to it.
    pub bytes: u64,
    /// The bytes from it.
    pub bytes_up: u64,
    /// The sum of the durations, in milliseconds. Several may run at a time.
    pub duration_ms: u64,
}

impl Who {
    /// Adds a request. The proxy's own requests have no client.
    pub(crate) fn add(&mut self, request: &Request) {
        if request.hop == Hop::Beyond {
            return;
        }
        let name = request.client.as_deref().or(request.remote.as_deref()).unwrap_or(OTHERS);
        let name = if self.clients.len() < MOST_CLIENTS || self.clients.contains_key(name) { name } else { OTHERS };
        let one = self.clients.entry(name.to_owned()).or_default();
        name.clone_into(&mut one.client);
        match request.hop {
            Hop::Tunnel => one.connections += 1,
            _ => one.requests += 1,
        }
        one.bytes += request.bytes;
        one.bytes_up += request.bytes_up;
        one.duration_ms = one.duration_ms.saturating_add(request.duration_ms);
    }

    /// Returns the clients, those with most bytes first.
    pub(crate) fn by_bytes(&self) -> Vec<&Use> {
        let mut clients: Vec<&Use> = self.clients.values().collect();
        clients.sort_by_key(|one| std::cmp::Reverse(one.bytes + one.bytes_up));
        clients
    }

    /// Returns a line for each client, those with most bytes first.
    pub(crate) fn words(&self) -> Vec<String> {
        let clients = self.by_bytes();
        let width = clients.iter().map(|one| one.client.len()).max().unwrap_or(0);
        let line = |one: &&Use| {
            format!(
                "{:width$}  {:>8} requests  {:>6} connections  {:>9} down  {:>9} up  {:>9}",
                one.client,
                one.requests,
                one.connections,
                words::bytes(one.bytes),
                words::bytes(one.bytes_up),
                words::duration(one.duration_ms),
            )
        };
        clients.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::tests::{line, request};
    use super::*;

    #[test]
    fn requests_and_connections_are_summed_up_by_client() {
        let mut who = Who::default();
        who.add(&request(""));
        who.add(&request(""));
        let tunnel = line("").replace("edge_http", "tunnel").replace("192.0.2.1", "198.51.100.0/24");
        who.add(&Request::parse(&tunnel.replace("4727", "1048576")).unwrap());
        who.add(&Request::parse(&line("").replace("edge_http", "inner")).unwrap());
        let lines = who.words();
        assert_eq!(
            lines,
            [
                "198.51.100.0/24         0 requests       1 connections    1.0 MiB down        0 B up     900 ms",
                "192.0.2.1               2 requests       0 connections      9 KiB down        0 B up     1.80 s",
            ]
        );
    }

    #[test]
    fn at_a_ground_the_remote_is_the_client_if_the_client_is_not_logged() {
        let mut who = Who::default();
        who.add(&Request::parse(&line("").replace(r#""client":"192.0.2.1""#, r#""remote":"203.0.113.7""#)).unwrap());
        assert_eq!(who.by_bytes().first().unwrap().client, "203.0.113.7");
    }
}
