//! The state of a running PEP: the report of `longhaul run` with the counters of Envoy and CoreDNS.
//!
//! `METRICS.md` describes every counter that is read here.

mod pair;

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::run::{ChildReport, Refusal, RunReport, Sockets, hex};
use crate::scrape::Scrape;
pub use pair::{Bundled, Packed, PairStatus};

const TIMEOUT: Duration = Duration::from_secs(5);

/// The state of a running PEP. Counters start at 0 when the process that counts starts.
#[derive(Debug, Serialize)]
pub struct Status {
    /// The problems; empty if there are none.
    pub problems: Vec<String>,
    /// The version of `longhaul run`.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// `edge`, `remote` or `ground`.
    pub role: String,
    /// The time since its start, in seconds.
    pub uptime_s: u64,
    /// The configuration in force.
    pub config: Config,
    /// The sockets by their keys.
    pub listen: Sockets,
    /// Envoy.
    pub envoy: Child,
    /// CoreDNS.
    pub coredns: Child,
    /// Counters of Envoy; None if it does not respond.
    pub traffic: Option<Traffic>,
    /// The other end of a pair; None for a box alone, and if Envoy does not respond.
    pub pair: Option<PairStatus>,
    /// Counters of CoreDNS; None if `listen.dns` or `listen.metrics` is off, or if it does not respond.
    pub dns: Option<DnsCounts>,
}

/// The configuration in force.
#[derive(Debug, Serialize)]
pub struct Config {
    /// The file.
    pub file: PathBuf,
    /// SHA-256 of its content when it was applied.
    pub sha256: String,
    /// True if the file has the same content now.
    pub is_the_file: bool,
    /// The time since it is in force, in seconds.
    pub in_force_s: u64,
    /// Changes applied since the start.
    pub changes: u32,
    /// The last change that was refused.
    pub refused: Option<Refusal>,
}

/// Envoy or CoreDNS.
#[derive(Debug, Serialize)]
pub struct Child {
    /// True if it responds.
    pub up: bool,
    /// Its own version string.
    pub version: Option<String>,
    /// Its process.
    pub pid: Option<u32>,
    /// The time since the start of that process, in seconds.
    pub uptime_s: Option<u64>,
    /// The number of restarts after a death.
    pub restarts: u32,
    /// The cause of its last death.
    pub last_end: Option<String>,
}

/// The traffic through Envoy.
#[derive(Debug, Serialize)]
pub struct Traffic {
    /// Requests and connections of clients.
    pub clients: Clients,
    /// Pages and style sheets.
    pub pages: Pages,
    /// Envoy's cache.
    pub cache: CacheCounts,
    /// Connections to origins, http and https.
    pub upstream: UpstreamCounts,
}

/// Requests and connections of clients.
#[derive(Debug, Serialize)]
pub struct Clients {
    /// Connections that are open now.
    pub connections: u64,
    /// Requests that Envoy read: http, and names whose TLS ends here.
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
pub struct Pages {
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
pub struct PerPage {
    /// The round trips.
    pub round_trips_saved: f64,
    /// The bytes.
    pub link_bytes_saved: f64,
}

/// Envoy's cache.
#[derive(Debug, Serialize)]
pub struct CacheCounts {
    /// Requests served from the cache.
    pub hits: u64,
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
pub struct UpstreamCounts {
    /// Requests sent.
    pub requests: u64,
    /// Connections opened.
    pub connections: u64,
    /// Connections that are open now.
    pub open: u64,
    /// The part of the requests that needed no new connection. None before the first request.
    pub reuse: Option<f64>,
}

/// Counts of CoreDNS.
#[derive(Debug, Serialize)]
pub struct DnsCounts {
    /// True if listed names are steered. False if the proxy does not respond or steering is paused. None if no names
    /// are listed.
    pub steering: Option<bool>,
    /// All queries.
    pub questions: u64,
    /// Responses that contain or name the proxy.
    pub steered: u64,
    /// Responses that were replaced by "no such data".
    pub suppressed: u64,
    /// All other queries.
    pub untouched: u64,
    /// SERVFAIL responses: no resolver responded, or its response is not valid.
    pub failed: u64,
    /// Responses for listed names that were not steered, by reason.
    #[serde(serialize_with = "as_map")]
    pub left: Vec<(String, u64)>,
}

/// Queries each part. A part that does not respond is a problem in the result, not an error.
pub fn gather(run: RunReport) -> Status {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let since = |then: u64| now.saturating_sub(then);
    let child = |report: ChildReport| Child {
        up: false,
        version: None,
        pid: report.pid,
        uptime_s: report.started.map(since),
        restarts: report.restarts,
        last_end: report.last_end,
    };
    let lists_names = run.lists_names;
    let mut status = Status {
        problems: Vec::new(),
        version: run.version,
        pid: run.pid,
        role: run.role,
        uptime_s: since(run.started),
        config: Config {
            is_the_file: fs::read(&run.file).is_ok_and(|bytes| hex(&Sha256::digest(bytes)) == run.config_sha256),
            file: run.file,
            sha256: run.config_sha256,
            in_force_s: since(run.in_force_since),
            changes: run.changes,
            refused: run.refused,
        },
        envoy: child(run.envoy),
        coredns: child(run.coredns),
        traffic: None,
        pair: None,
        dns: None,
        listen: run.listen,
    };
    status.ask_envoy();
    status.ask_coredns(lists_names);
    status.find_problems();
    status
}

impl Status {
    fn ask_envoy(&mut self) {
        let admin = self.listen.admin;
        if let Some(info) = get(admin, "/server_info").and_then(|text| serde_json::from_str(&text).ok()) {
            let info: serde_json::Value = info;
            self.envoy.up = info.get("state").is_some_and(|state| state == "LIVE");
            // REVISION/VERSION/...
            let version = info.get("version").and_then(|version| version.as_str());
            self.envoy.version = version.and_then(|version| version.split('/').nth(1)).map(str::to_owned);
        }
        let Some(page) = get(admin, "/stats/prometheus") else { return };
        let scrape = Scrape::parse(&page);
        self.traffic = Some(Traffic::of(&scrape));
        self.pair = PairStatus::of(&self.role, &scrape);
    }

    fn ask_coredns(&mut self, lists_names: bool) {
        let Some(metrics) = self.listen.metrics else {
            // Without metrics, only the process of CoreDNS is visible.
            self.coredns.up = self.coredns.pid.is_some();
            return;
        };
        let Some(page) = get(metrics, "/metrics") else { return };
        let scrape = Scrape::parse(&page);
        self.coredns.up = true;
        self.coredns.version = scrape.label("coredns_build_info", "version");
        self.dns = Some(DnsCounts::of(&scrape, lists_names));
    }

    fn find_problems(&mut self) {
        for (name, child) in [("Envoy", &self.envoy), ("CoreDNS", &self.coredns)] {
            if !child.up {
                let how = child.last_end.as_ref().map(|how| format!("; it {how}")).unwrap_or_default();
                self.problems.push(format!("{name} does not respond{how}"));
            }
        }
        if self.config.refused.as_ref().is_some_and(|refused| refused.standing) {
            self.problems.push("the present files were refused; an earlier configuration is in force".to_owned());
        } else if !self.config.is_the_file {
            self.problems.push("the configuration file changed a moment ago and is not yet in force".to_owned());
        }
        // Only a remote needs the other end. A ground may wait for remotes for any time.
        if self.role == "remote" && self.pair.as_ref().is_some_and(|pair| !pair.up) {
            self.problems.push("the ground does not respond".to_owned());
        }
        if self.dns.as_ref().is_some_and(|dns| dns.steering == Some(false)) {
            self.problems
                .push("no name is steered, because the proxy does not respond or steering is paused".to_owned());
        }
    }
}

impl Traffic {
    fn of(scrape: &Scrape) -> Self {
        const HCM: &str = "envoy_http_conn_manager_prefix";
        let edge = |name: &str| scrape.sum_where(name, |of| of(HCM).is_some_and(|prefix| prefix.starts_with("edge_")));
        let packed = |end: &str| -> u64 {
            let codings = ["br_brotli", "gzip_gzip"];
            codings.iter().map(|coding| edge(&format!("envoy_http_compressor_{coding}_response_total_{end}"))).sum()
        };
        Self {
            clients: Clients {
                connections: edge("envoy_http_downstream_cx_active"),
                requests: edge("envoy_http_downstream_rq_total"),
                passed_through: scrape.sum("envoy_tcp_downstream_cx_total"),
                bytes_to_compress: packed("uncompressed_bytes"),
                bytes_compressed: packed("compressed_bytes"),
            },
            pages: Pages::of(scrape),
            cache: CacheCounts {
                hits: scrape.sum_of("envoy_cache_event", "event_type", "hit"),
                misses: scrape.sum_of("envoy_cache_event", "event_type", "miss"),
                uncacheable: scrape.sum_of("envoy_cache_event", "event_type", "uncacheable"),
                bytes: scrape.sum("envoy_cache_size_bytes"),
                limit_bytes: scrape.sum("envoy_cache_size_limit_bytes"),
            },
            upstream: UpstreamCounts::of(scrape),
        }
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
                    cluster == "origin_http" || cluster == "origin_https" || cluster.starts_with("map_")
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

impl DnsCounts {
    /// Reads the counters. The gauge of steering exists and is 0 even if no names are listed.
    fn of(scrape: &Scrape, lists_names: bool) -> Self {
        let ours = |name| scrape.sum(&format!("coredns_longhaul_{name}_total"));
        let questions = scrape.sum("coredns_dns_requests_total");
        let steered = ours("rewrites") + ours("own_answers");
        let suppressed = ours("suppressed") + ours("canary_answers");
        Self {
            steering: lists_names.then(|| scrape.sum("coredns_longhaul_steering") > 0),
            questions,
            steered,
            suppressed,
            untouched: questions.saturating_sub(steered + suppressed),
            failed: scrape.sum_of("coredns_dns_responses_total", "rcode", "SERVFAIL"),
            left: scrape.by("coredns_longhaul_skips_total", "reason"),
        }
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
    let ratio = part as f64 / whole as f64;
    ratio
}

fn get(socket: SocketAddr, path: &str) -> Option<String> {
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).proxy(None).build().into();
    agent.get(format!("http://{socket}{path}")).call().ok()?.body_mut().read_to_string().ok()
}

fn as_map<S: Serializer>(pairs: &[(String, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dns_without_a_list_is_not_called_a_dns_that_steers_nobody() {
        let off = "coredns_dns_requests_total{} 3\ncoredns_longhaul_steering{} 0\n";
        let without = DnsCounts::of(&Scrape::parse(off), false);
        assert_eq!((without.steering, without.questions), (None, 3));
        assert_eq!(DnsCounts::of(&Scrape::parse(off), true).steering, Some(false));
        let on = off.replace("steering{} 0", "steering{} 1");
        assert_eq!(DnsCounts::of(&Scrape::parse(&on), true).steering, Some(true));
    }

    #[test]
    fn failed_questions_are_counted_apart() {
        let text =
            "coredns_dns_responses_total{rcode=\"NOERROR\"} 5\ncoredns_dns_responses_total{rcode=\"SERVFAIL\"} 2\n";
        assert_eq!(DnsCounts::of(&Scrape::parse(text), true).failed, 2);
    }
}
