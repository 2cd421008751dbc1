//! The counters of one moment. Only differences of two readings mean something.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::scrape::Scrape;

/// The label of a connection manager's name.
const HCM: &str = "envoy_http_conn_manager_prefix";
/// Milliseconds and seconds, in microseconds.
const MS: f64 = 1e3;
const S: f64 = 1e6;
/// The names of a ground's listeners for clients' bytes begin with these.
const BYTES: [&str; 2] = ["bytes", "introduced"];

/// The chains of clients' connections that pass unread, by `envoy_tcp_prefix`. The others carry the same bytes one hop
/// further, or belong to the pair: warm connections, the pipe, lookups.
pub(crate) const PASSED_THROUGH: [&str; 6] =
    ["tls", "nameless", "pass_through", "original_destination", "other", "other_ports"];

/// Returns true if a chain with this `envoy_tcp_prefix` carries clients' connections that pass unread.
pub(crate) fn passes_through(prefix: &str) -> bool {
    PASSED_THROUGH.contains(&prefix)
}

/// The savings of clients and of the link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Saved {
    /// Round trips over the link.
    pub round_trips: u64,
    /// Bytes on the link.
    pub bytes: u64,
    /// Responses from the cache.
    pub from_cache: u64,
}

impl Saved {
    /// Returns what came since `before`. A program that has started again counts from zero.
    #[must_use]
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            round_trips: grown(self.round_trips, before.round_trips),
            bytes: grown(self.bytes, before.bytes),
            from_cache: grown(self.from_cache, before.from_cache),
        }
    }
}

/// The counters of a box.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// Bytes over the link to clients.
    pub(crate) down: u64,
    /// Bytes from them.
    pub(crate) up: u64,
    /// Requests of clients, and their connections that pass unread.
    pub(crate) requests: u64,
    /// The time of resolvers for a query. A remote has none.
    pub(crate) lookups: Histogram,
    /// The time until a connection to an origin stands.
    pub(crate) connects: Histogram,
    /// The time of origins from the request to the first byte of the response, without the connection. Pages over https
    /// pass unread, so it has none of them.
    pub(crate) first_bytes: Histogram,
    /// The savings.
    pub(crate) saved: Saved,
}

impl Reading {
    /// Reads the counters of Envoy in a box with `role`. CoreDNS's follow, and the savings.
    pub(crate) fn of_envoy(role: &str, scrape: &Scrape) -> Self {
        let (down, up) = link_bytes(role, scrape);
        let of_origins = |of: &dyn Fn(&str) -> Option<String>| {
            of("envoy_cluster_name").is_some_and(|name| name.starts_with("origin_") || name.starts_with("map_"))
        };
        Self {
            down,
            up,
            connects: Histogram::of(scrape, "envoy_cluster_upstream_cx_connect_ms", MS, of_origins),
            first_bytes: Histogram::of(scrape, "envoy_longhaul_origin_first_byte_ms", MS, |_| true),
            ..Self::default()
        }
    }

    /// Adds the counters of CoreDNS. A remote's lookups cross the link, so they show no resolver.
    pub(crate) fn add_coredns(&mut self, role: &str, scrape: &Scrape) {
        let resolver = |of: &dyn Fn(&str) -> Option<String>| of("proxy_name").as_deref() == Some("forward");
        if role != "remote" {
            self.lookups = Histogram::of(scrape, "coredns_proxy_request_duration_seconds", S, resolver);
        }
    }
}

/// Returns the bytes over the link: to clients, and from them.
fn link_bytes(role: &str, scrape: &Scrape) -> (u64, u64) {
    let http = |way: &str| {
        let name = format!("envoy_http_downstream_cx_{way}_bytes_total");
        scrape.sum_where(&name, |of| of(HCM).is_some_and(|prefix| prefix.starts_with("edge_")))
    };
    let tcp = |way: &str, counts: &dyn Fn(&str) -> bool| {
        let name = format!("envoy_tcp_downstream_cx_{way}_bytes_total");
        scrape.sum_where(&name, |of| of("envoy_tcp_prefix").is_some_and(|prefix| counts(&prefix)))
    };
    let cluster = |way: &str, cluster: &str| {
        scrape.sum_of(&format!("envoy_cluster_upstream_cx_{way}_bytes_total"), "envoy_cluster_name", cluster)
    };
    let both = |of: &dyn Fn(&str) -> u64| (of("tx"), of("rx"));
    match role {
        "remote" => {
            // Bytes of warm streams are bytes of the pipe, too.
            let of = |way: &str, back: &str| {
                let streams = tcp(back, &|prefix| prefix == "warm");
                cluster(way, "pipe") + cluster(way, "warm").saturating_sub(streams)
            };
            (of("rx", "tx"), of("tx", "rx"))
        }
        "ground" => both(&|way| http(way) + tcp(way, &|prefix| BYTES.iter().any(|bytes| prefix.starts_with(bytes)))),
        _ => both(&|way| http(way) + tcp(way, &passes_through)),
    }
}

/// Returns the growth of a counter.
pub(super) fn grown(now: u64, before: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_counts_the_bytes_of_warm_streams_once() {
        let of = |text: &str| {
            let reading = Reading::of_envoy("remote", &Scrape::parse(text));
            (reading.down, reading.up)
        };
        let bytes = "envoy_cluster_upstream_cx_rx_bytes_total{envoy_cluster_name=\"pipe\"} 100\n\
                     envoy_cluster_upstream_cx_tx_bytes_total{envoy_cluster_name=\"pipe\"} 10\n\
                     envoy_cluster_upstream_cx_rx_bytes_total{envoy_cluster_name=\"warm\"} 70\n\
                     envoy_cluster_upstream_cx_tx_bytes_total{envoy_cluster_name=\"warm\"} 7\n\
                     envoy_cluster_upstream_cx_rx_bytes_total{envoy_cluster_name=\"share\"} 70\n";
        assert_eq!(of(bytes), (170, 17), "connections");
        let streams = "envoy_tcp_downstream_cx_tx_bytes_total{envoy_tcp_prefix=\"warm\"} 70\n\
                       envoy_tcp_downstream_cx_rx_bytes_total{envoy_tcp_prefix=\"warm\"} 7\n";
        assert_eq!(of(&format!("{bytes}{streams}")), (100, 10), "streams of the pipe");
    }

    #[test]
    fn an_edge_and_a_ground_count_what_their_listeners_send() {
        let text = "envoy_http_downstream_cx_tx_bytes_total{envoy_http_conn_manager_prefix=\"edge_http\"} 100\n\
                    envoy_http_downstream_cx_tx_bytes_total{envoy_http_conn_manager_prefix=\"inner\"} 5000\n\
                    envoy_http_downstream_cx_rx_bytes_total{envoy_http_conn_manager_prefix=\"edge_http\"} 3\n\
                    envoy_tcp_downstream_cx_tx_bytes_total{envoy_tcp_prefix=\"tls\"} 40\n\
                    envoy_tcp_downstream_cx_tx_bytes_total{envoy_tcp_prefix=\"introduced\"} 7\n\
                    envoy_tcp_downstream_cx_tx_bytes_total{envoy_tcp_prefix=\"shared\"} 7\n";
        let of = |role| {
            let reading = Reading::of_envoy(role, &Scrape::parse(text));
            (reading.down, reading.up)
        };
        assert_eq!(of("edge"), (140, 3));
        assert_eq!(of("ground"), (107, 3));
    }

    #[test]
    fn times_of_origins_and_of_resolvers_are_read_and_those_of_the_box_are_not() {
        let text = "envoy_cluster_upstream_cx_connect_ms_bucket{envoy_cluster_name=\"origin_tcp\",le=\"250\"} 3\n\
                    envoy_cluster_upstream_cx_connect_ms_bucket{envoy_cluster_name=\"inner\",le=\"250\"} 9\n\
                    envoy_longhaul_origin_first_byte_ms_bucket{le=\"500\"} 2\n";
        let names = "coredns_proxy_request_duration_seconds_bucket{proxy_name=\"forward\",le=\"0.5\"} 4\n";
        let of = |role| {
            let mut reading = Reading::of_envoy(role, &Scrape::parse(text));
            reading.add_coredns(role, &Scrape::parse(names));
            [&reading.connects, &reading.first_bytes, &reading.lookups].map(Histogram::count)
        };
        assert_eq!((of("ground"), of("remote")), ([3, 2, 4], [3, 2, 0]));
    }
}
