//! Envoy's counters: clients, pages, the cache, and connections to origins.

use serde::{Serialize, Serializer};

use crate::scrape::Scrape;
use crate::why::passes_through;

/// The traffic through Envoy.
#[derive(Debug, Serialize)]
pub(super) struct Traffic {
    /// Requests and connections of clients.
    pub clients: Clients,
    /// Pages and style sheets. None if no page is rewritten here.
    pub pages: Option<Pages>,
    /// The cache. None without one, or without counts of its program.
    pub cache: Option<CacheCounts>,
    /// Connections to origins, http and https.
    pub upstream: UpstreamCounts,
}

/// Requests and connections of clients.
#[derive(Debug, Serialize)]
pub(super) struct Clients {
    /// Connections that are open now.
    pub connections: u64,
    /// Requests that Envoy read: http, and names whose TLS ends here. A ground counts those of remotes' clients alone:
    /// health checks, lookups and streams for bytes are requests on the pipe, too.
    pub requests: u64,
    /// Connections that were passed through unread.
    pub passed_through: u64,
    /// The input of the compressors, in bytes.
    pub bytes_to_compress: u64,
    /// Their output, in bytes.
    pub bytes_compressed: u64,
}

/// Counts of url-rewrite.
#[derive(Debug, Serialize)]
pub(super) struct Pages {
    /// Bodies that were rewritten.
    pub rewritten: u64,
    /// URLs that point to the proxy now.
    pub urls_moved: u64,
    /// URLs that were left, by reason, most first.
    #[serde(serialize_with = "as_map")]
    pub urls_left: Vec<(String, u64)>,
    /// Bodies that were left unchanged from some point on, by reason.
    #[serde(serialize_with = "as_map")]
    pub bail_outs: Vec<(String, u64)>,
    /// Requests for documents that were sent to their true URL.
    pub redirected: u64,
    /// Requests to the proxy's own origin that were refused, by reason.
    #[serde(serialize_with = "as_map")]
    pub refused: Vec<(String, u64)>,
    /// An estimate of the round trips of DNS queries and handshakes that did not cross the link.
    pub round_trips_saved: u64,
    /// The bytes of these round trips.
    pub link_bytes_saved: u64,
    /// Both estimates per page.
    pub per_page: Option<PerPage>,
}

/// Means over all pages.
#[derive(Debug, Serialize)]
pub(super) struct PerPage {
    /// The round trips.
    pub round_trips_saved: f64,
    /// The bytes.
    pub link_bytes_saved: f64,
}

/// The cache.
#[derive(Debug, Serialize)]
pub(super) struct CacheCounts {
    /// Requests served from the cache.
    pub hits: u64,
    /// Those of them that were served with a stale response.
    pub stale: u64,
    /// Requests sent to the origin, whose responses may be cached.
    pub misses: u64,
    /// Responses that may not be cached.
    pub uncacheable: u64,
    /// The bytes in the cache.
    pub bytes: u64,
    /// The size limit of the cache, in bytes.
    pub limit_bytes: u64,
}

/// Connections to origins.
#[derive(Debug, Serialize)]
pub(super) struct UpstreamCounts {
    /// Requests sent.
    pub requests: u64,
    /// Connections opened.
    pub connections: u64,
    /// Connections that are open now.
    pub open: u64,
    /// The part of the requests that needed no new connection. None before the first request.
    pub reuse: Option<f64>,
}

impl Traffic {
    /// Reads the counters of a box with `role`.
    pub(super) fn of(role: &str, scrape: &Scrape) -> Self {
        const HCM: &str = "envoy_http_conn_manager_prefix";
        let edge = |name: &str| scrape.sum_where(name, |of| of(HCM).is_some_and(|prefix| prefix.starts_with("edge_")));
        let packed = |end: &str| -> u64 {
            let codings = ["br_brotli", "gzip_gzip"];
            codings.iter().map(|coding| edge(&format!("envoy_http_compressor_{coding}_response_total_{end}"))).sum()
        };
        Self {
            clients: Clients {
                connections: edge("envoy_http_downstream_cx_active"),
                requests: match role {
                    "ground" => scrape.sum_of("envoy_vhost_route_upstream_rq_total", "envoy_route", "requests"),
                    _ => edge("envoy_http_downstream_rq_total"),
                },
                passed_through: scrape.sum_where("envoy_tcp_downstream_cx_total", |of| {
                    of("envoy_tcp_prefix").is_some_and(|prefix| passes_through(&prefix))
                }),
                bytes_to_compress: packed("uncompressed_bytes"),
                bytes_compressed: packed("compressed_bytes"),
            },
            // The filter has no counters before its first page.
            pages: (role == "edge" || scrape.has("longhaul_url_rewrite_")).then(|| Pages::of(scrape)),
            cache: None,
            upstream: UpstreamCounts::of(scrape),
        }
    }
}

impl CacheCounts {
    /// Returns the counts of longhaul-objects, with those of the reader in Envoy. None without the program.
    pub(super) fn of_objects(program: &Scrape, envoy: &Scrape, limit_bytes: u64) -> Option<Self> {
        const PROGRAM: &str = "longhaul_objects_requests_total";
        const READER: &str = "longhaul_object_reader_requests_total";
        let of = |scrape: &Scrape, name, reason| scrape.sum_of(name, "reason", reason);
        let all = |reasons: &[&'static str]| reasons.iter().map(|reason| of(program, PROGRAM, reason)).sum::<u64>();
        let stale = all(&["stale_while_revalidate", "stale_if_error"]);
        program.has(PROGRAM).then(|| Self {
            hits: stale + all(&["hit", "revalidated", "joined"]) + of(envoy, READER, "hit"),
            stale,
            misses: of(program, PROGRAM, "stored"),
            uncacheable: of(program, PROGRAM, "past") + of(envoy, READER, "past"),
            bytes: program.sum("longhaul_objects_disk_bytes"),
            limit_bytes,
        })
    }
}

impl Pages {
    fn of(scrape: &Scrape) -> Self {
        let sum = |name| scrape.sum(&format!("longhaul_url_rewrite_{name}_total"));
        let by = |name| scrape.by(&format!("longhaul_url_rewrite_{name}_total"), "reason");
        let (rewritten, round_trips_saved, link_bytes_saved) =
            (sum("pages"), sum("round_trips_saved"), sum("link_bytes_saved"));
        Self {
            rewritten,
            urls_moved: sum("urls_moved"),
            urls_left: by("urls_left"),
            bail_outs: by("bail_outs"),
            redirected: sum("redirected"),
            refused: by("refused"),
            round_trips_saved,
            link_bytes_saved,
            per_page: (rewritten > 0).then(|| PerPage {
                round_trips_saved: ratio(round_trips_saved, rewritten),
                link_bytes_saved: ratio(link_bytes_saved, rewritten),
            }),
        }
    }
}

impl UpstreamCounts {
    fn of(scrape: &Scrape) -> Self {
        // `inner` and `tunnel` lead from one hop to the other. Connections of `origin_tcp` do not belong to requests.
        let origins = |name| {
            scrape.sum_where(name, |of| {
                of("envoy_cluster_name").is_some_and(|cluster| {
                    ["origin_http", "origin_https", "parents"].contains(&cluster.as_str())
                        || cluster.starts_with("map_")
                })
            })
        };
        let (requests, connections) =
            (origins("envoy_cluster_upstream_rq_total"), origins("envoy_cluster_upstream_cx_total"));
        Self {
            requests,
            connections,
            open: origins("envoy_cluster_upstream_cx_active"),
            reuse: (requests > 0).then(|| 1.0 - ratio(connections.min(requests), requests)),
        }
    }
}

pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
    let ratio = part as f64 / whole as f64;
    ratio
}

pub(super) fn as_map<S: Serializer>(pairs: &[(String, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::PASSED_THROUGH;

    #[test]
    fn a_connection_that_passes_through_counts_once_and_those_of_the_pair_do_not() {
        let count = |prefix: &str| format!("envoy_tcp_downstream_cx_total{{envoy_tcp_prefix=\"{prefix}\"}} 1\n");
        let of = |prefixes: &[&str]| {
            let text: String = prefixes.iter().map(|prefix| count(prefix)).collect();
            Traffic::of("remote", &Scrape::parse(&text)).clients.passed_through
        };
        assert_eq!(of(&["tls", "naming", "hold", "warm", "hold_pipe", "dns"]), 1, "at a remote");
        assert_eq!(of(&["pass_through", "bytes", "introduced", "shared", "dns"]), 1, "at a ground");
        assert_eq!(of(&PASSED_THROUGH), 6);
    }
}
