//! The link of a pair: its open connections, and the effect of compression and bundling on its traffic.

use serde::Serialize;

use super::traffic::ratio;
use crate::report::PairReport;
use crate::scrape::Scrape;

/// The state of the link, as one end sees it.
#[derive(Debug, Serialize)]
pub(super) struct PairStatus {
    /// True if requests have a connection over the link. False at a remote that connects to origins itself.
    pub up: bool,
    /// Connections for requests: of a remote to the ground, or of all remotes to a ground.
    pub pipe: u64,
    /// Connections for clients' bytes that are open and unused. None at a ground, which does not count them separately.
    pub warm: Option<u64>,
    /// Connections of clients to other TCP ports. None without `listen.tcp`.
    pub other_ports: Option<OtherPortCounts>,
    /// Bytes of headers before compression, and after.
    pub headers: Packed,
    /// Objects that were sent before a request. None if `page.bundle` is off.
    pub bundled: Option<Bundled>,
}

/// Connections of clients to other TCP ports (`listen.tcp`).
#[derive(Debug, Serialize)]
pub(super) struct OtherPortCounts {
    /// All of them.
    pub connections: u64,
    /// Those that this box tried itself, because the ground did not take them.
    pub direct: u64,
}

impl OtherPortCounts {
    fn of(scrape: &Scrape) -> Option<Self> {
        // Envoy has no counter of a listener before its first connection, but those of a cluster at once.
        const DIRECT: &str = "envoy_cluster_upstream_cx_total";
        let clusters = scrape.values(DIRECT, "envoy_cluster_name");
        clusters.into_iter().find(|(name, _)| name == "dialled").map(|(_, direct)| Self {
            connections: scrape.sum_of("envoy_tcp_downstream_cx_total", "envoy_tcp_prefix", "other_ports"),
            direct,
        })
    }
}

/// The sizes of header fields.
#[derive(Debug, Serialize)]
pub(super) struct Packed {
    /// The bytes of names and values.
    pub plain_bytes: u64,
    /// The bytes that crossed the link.
    #[allow(clippy::struct_field_names, reason = "the name in the JSON of the status")]
    pub packed_bytes: u64,
    /// Compressed bytes divided by plain bytes. None before the first field.
    pub ratio: Option<f64>,
}

/// Objects that were sent before a request.
#[derive(Debug, Serialize)]
pub(super) struct Bundled {
    /// Remote: pages with a flight. Ground: pages that were scanned for objects.
    pub pages: u64,
    /// Remote: browsers' requests served with such an object. Ground: objects sent.
    pub objects: u64,
    /// Ground: objects that were named instead, because the remote had them. None at a remote.
    pub named: Option<u64>,
}

impl PairStatus {
    /// Reads the counters. None for the role `edge`.
    pub(super) fn of(role: &str, scrape: &Scrape) -> Option<Self> {
        let cluster =
            |gauge: &str, name: &str| scrape.sum_of(&format!("envoy_cluster_{gauge}"), "envoy_cluster_name", name);
        let remotes =
            || scrape.sum_of("envoy_http_downstream_cx_active", "envoy_http_conn_manager_prefix", "edge_http");
        let bundling = |name: &str| scrape.sum(&format!("longhaul_bundling_{name}_total"));
        let (up, pipe, warm, [pages, objects]) = match role {
            "remote" => {
                let pipe = cluster("upstream_cx_active", "pipe");
                let warm = cluster("upstream_cx_active", "warm").saturating_sub(cluster("upstream_rq_active", "warm"));
                // After a change of the file, requests use the former cluster until the new one passes a health check.
                let is_changing = scrape.sum("envoy_cluster_manager_warming_clusters") > 0;
                let up = pipe > 0 && (is_changing || cluster("membership_healthy", "pipe") > 0);
                (up, pipe, Some(warm), ["flights", "answered"])
            }
            "ground" => (remotes() > 0, remotes(), None, ["pages", "objects"]),
            _ => return None,
        };
        let packing = |name: &str| scrape.sum(&format!("longhaul_header_compression_{name}_bytes_total"));
        let (plain_bytes, packed_bytes) = (packing("plain"), packing("packed"));
        Some(Self {
            up,
            pipe,
            warm,
            other_ports: OtherPortCounts::of(scrape),
            headers: Packed {
                plain_bytes,
                packed_bytes,
                ratio: (plain_bytes > 0).then(|| ratio(packed_bytes, plain_bytes)),
            },
            bundled: scrape.has(&format!("longhaul_bundling_{pages}_total")).then(|| Bundled {
                pages: bundling(pages),
                objects: bundling(objects),
                named: (role == "ground").then(|| bundling("references")),
            }),
        })
    }

    /// Corrects the state by the kernel's. While Envoy tries to connect to a ground that is gone, and has not given it up
    /// yet, its counters are those of a healthy one.
    pub(super) fn seen_by_the_kernel(self, other_end: &PairReport) -> Self {
        Self { up: self.up && !other_end.unconnected, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOTE: &str = "\
envoy_cluster_membership_healthy{envoy_cluster_name=\"pipe\"} 1
envoy_cluster_upstream_cx_active{envoy_cluster_name=\"pipe\"} 2
envoy_cluster_upstream_cx_active{envoy_cluster_name=\"warm\"} 48
envoy_cluster_upstream_rq_active{envoy_cluster_name=\"warm\"} 16
longhaul_header_compression_plain_bytes_total{} 1000
longhaul_header_compression_packed_bytes_total{} 50
";

    #[test]
    fn a_remote_counts_what_is_open_and_unused_and_is_down_where_the_pipe_is_not_used() {
        let pair = PairStatus::of("remote", &Scrape::parse(REMOTE)).unwrap();
        assert_eq!((pair.up, pair.pipe, pair.warm), (true, 2, Some(32)));
        assert_eq!(pair.headers.ratio, Some(0.05));
        assert!(pair.bundled.is_none() && pair.other_ports.is_none());
        let away = REMOTE.replace(
            "membership_healthy{envoy_cluster_name=\"pipe\"} 1",
            "membership_healthy{envoy_cluster_name=\"pipe\"} 0",
        );
        assert!(!PairStatus::of("remote", &Scrape::parse(&away)).unwrap().up);
        let changing = format!("{away}envoy_cluster_manager_warming_clusters{{}} 1\n");
        assert!(PairStatus::of("remote", &Scrape::parse(&changing)).unwrap().up, "the former cluster serves");
        let closed =
            changing.replace("cx_active{envoy_cluster_name=\"pipe\"} 2", "cx_active{envoy_cluster_name=\"pipe\"} 0");
        assert!(!PairStatus::of("remote", &Scrape::parse(&closed)).unwrap().up);
        assert!(PairStatus::of("edge", &Scrape::parse(REMOTE)).is_none());
    }

    #[test]
    fn a_remote_is_down_while_its_only_connections_are_attempts() {
        let up = |unconnected| {
            let pair = PairStatus::of("remote", &Scrape::parse(REMOTE)).unwrap();
            pair.seen_by_the_kernel(&PairReport { unconnected, ..PairReport::default() }).up
        };
        assert_eq!((up(false), up(true)), (true, false));
    }

    #[test]
    fn a_remote_tells_other_ports_over_the_pipe_from_those_past_it() {
        let counts = "envoy_tcp_downstream_cx_total{envoy_tcp_prefix=\"other_ports\"} 12\n\
                      envoy_tcp_downstream_cx_total{envoy_tcp_prefix=\"tls\"} 7\n\
                      envoy_cluster_upstream_cx_total{envoy_cluster_name=\"dialled\"} 2\n";
        let ports =
            PairStatus::of("remote", &Scrape::parse(&format!("{REMOTE}{counts}"))).unwrap().other_ports.unwrap();
        assert_eq!((ports.connections, ports.direct), (12, 2));
    }

    #[test]
    fn a_ground_counts_its_remotes_and_objects_it_sent() {
        let text = "envoy_http_downstream_cx_active{envoy_http_conn_manager_prefix=\"edge_http\"} 3\n\
                    envoy_http_downstream_cx_active{envoy_http_conn_manager_prefix=\"inner\"} 9\n\
                    longhaul_bundling_pages_total{} 4\nlonghaul_bundling_objects_total{} 18\n\
                    longhaul_bundling_references_total{} 36\n";
        let pair = PairStatus::of("ground", &Scrape::parse(text)).unwrap();
        assert_eq!((pair.up, pair.pipe, pair.warm), (true, 3, None));
        let bundled = pair.bundled.unwrap();
        assert_eq!((bundled.pages, bundled.objects, bundled.named), (4, 18, Some(36)));
        assert!(!PairStatus::of("ground", &Scrape::parse("")).unwrap().up);
    }
}
