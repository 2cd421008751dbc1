//! The metrics page (`listen.metrics`): what Envoy, CoreDNS and this run count, in one exposition.
//!
//! Envoy serves its statistics on its admin interface, which obeys orders. So this page reads them there and passes on
//! nothing else.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use longhaul_config::Settings;
use longhaul_observe::bill::{GroupReport, QuotaReport};
use longhaul_observe::report::{HostReport, LinkState, ProblemKind};
use longhaul_observe::{Endpoint, OpenFiles};

use super::joined_pages::joined;
use super::log::Level;
use super::page_server::PageServer;
use super::ports::ListenSocket;
use super::publisher::now;
use super::say;
use super::status_page::own_names;
use crate::web::{Pages, Resource};

/// The media type of Prometheus' text format.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The only path.
const PATH: &str = "/metrics";

/// The metrics page. It is not served while `listen.metrics` is off or its default socket is in use.
pub(super) struct MetricsServer {
    pages: Pages,
    server: PageServer,
    facts: Arc<Mutex<Facts>>,
}

/// The facts of a run on which the page depends.
#[derive(Debug, Clone, Default)]
struct Facts {
    /// True if CoreDNS counts the queries of clients.
    counts_dns: bool,
    /// True if longhaul-objects caches objects.
    caches_objects: bool,
    /// The process of Envoy.
    envoy: Option<u32>,
    /// The problems that stand.
    problems: Vec<ProblemKind>,
    /// The accounts of groups of clients.
    groups: Vec<GroupReport>,
    /// The configuration file of a remote with several links.
    links_of: Option<PathBuf>,
}

impl MetricsServer {
    /// Reads Envoy's statistics at `admin`, those of CoreDNS at `dns`, and those of longhaul-objects at `objects`.
    pub(super) fn new(admin: Endpoint, dns: Endpoint, objects: Option<Endpoint>) -> Self {
        let facts = Arc::new(Mutex::new(Facts::default()));
        let shared = Arc::clone(&facts);
        let page = move |path: &str| {
            let facts = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
            (path == PATH).then(|| Resource::ok(MEDIA_TYPE, exposition(&admin, &dns, objects.as_ref(), &facts)))
        };
        Self { pages: Arc::new(page), server: PageServer::new("listen.metrics", "metrics page"), facts }
    }

    /// Starts, stops or replaces the server, as the settings want. `envoy` is the process of Envoy, `problems` are those
    /// that stand, and `groups` the accounts of clients. Call it often.
    pub(super) fn tend(
        &mut self,
        settings: &Settings,
        envoy: Option<u32>,
        problems: Vec<ProblemKind>,
        groups: Vec<GroupReport>,
    ) {
        let caches_objects = settings.cache.is_on_disk();
        let links_of = (!settings.links.is_empty()).then(|| settings.file.clone());
        let facts = Facts { counts_dns: settings.counts_dns(), caches_objects, envoy, problems, groups, links_of };
        *self.facts.lock().unwrap_or_else(PoisonError::into_inner) = facts;
        if let Some(socket) = self.server.tend(settings.listen.metrics, own_names(settings), &self.pages) {
            say(Level::Info, &format!("the metrics are at http://{socket}{PATH}"));
        }
    }

    /// Returns the socket on which it serves.
    pub(super) fn socket(&self) -> Option<SocketAddr> {
        self.server.socket()
    }

    /// Returns the same, as a socket that this run has already.
    pub(super) fn listens_on(&self) -> Option<ListenSocket> {
        self.server.listens_on()
    }
}

fn exposition(admin: &Endpoint, dns: &Endpoint, objects: Option<&Endpoint>, facts: &Facts) -> String {
    let mut programs = vec![("envoy", admin.page("/stats/prometheus").ok())];
    if facts.counts_dns {
        programs.push(("coredns", dns.page(PATH).ok()));
    }
    if let Some(objects) = objects.filter(|_| facts.caches_objects) {
        programs.push(("longhaul-objects", objects.page(PATH).ok()));
    }
    let up = programs.iter().map(|(name, page)| (*name, u64::from(page.is_some())));
    let mut own = gauge("process_up", "process", "Whether the program responds to this scrape (1) or not (0).", up);
    let standing = ProblemKind::ALL.iter().map(|kind| (kind.label(), u64::from(facts.problems.contains(kind))));
    own += &gauge("problem", "kind", "Whether a problem of this kind stands (1) or not (0).", standing);
    if let Some(files) = facts.envoy.and_then(OpenFiles::of) {
        own += &gauge(
            "open_files",
            "process",
            "Files, sockets and pipes that the program has open.",
            [("envoy", files.open)],
        );
        own += &gauge("open_files_limit", "process", "The most that it may have open.", [("envoy", files.limit)]);
    }
    own += &of_groups(&facts.groups);
    own += &of_links(&facts.links_of.as_deref().map(|file| HostReport::links(file, now())).unwrap_or_default());
    joined(programs.iter().filter_map(|(_, page)| page.as_deref()).chain([own.as_str()]))
}

/// Writes the accounts of groups of clients.
fn of_groups(groups: &[GroupReport]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let bytes =
        groups.iter().flat_map(|group| by(&group.name, DIRECTIONS, [group.since_start.down, group.since_start.up]));
    let help = "Bytes of the clients of a group over the link.";
    let mut text = metric("counter", "group_bytes_total", help, ["group", "direction"], bytes);
    let seconds = groups.iter().map(|group| ([group.name.as_str()], group.since_start.seconds));
    let help = "Time in which clients of a group moved bytes, in whole minutes.";
    text += &metric("counter", "group_seconds_total", help, ["group"], seconds);
    let quotas = |value: fn(&QuotaReport) -> u64| {
        groups.iter().filter_map(move |group| Some((group.name.as_str(), value(group.quota.as_ref()?))))
    };
    if groups.iter().any(|group| group.quota.is_some()) {
        text += &gauge("group_quota_bytes", "group", "The bytes of a quota.", quotas(|quota| quota.bytes));
        text += &gauge("group_quota_used_bytes", "group", "The bytes of it that are used.", quotas(|quota| quota.used));
        let help = "Whether the clients of a group are slow, because the quota is used up (1) or not (0).";
        text += &gauge("group_slow", "group", help, quotas(|quota| u64::from(quota.slow)));
    }
    text
}

/// Writes the states of several links.
fn of_links(links: &[LinkState]) -> String {
    if links.is_empty() {
        return String::new();
    }
    let each = |value: fn(&LinkState) -> u64| links.iter().map(move |link| (link.name.as_str(), value(link)));
    let mut text =
        gauge("link_up", "link", "Whether one of several links works (1) or not (0).", each(|link| link.alive.into()));
    let bytes = links.iter().flat_map(|link| by(&link.name, DIRECTIONS, [link.down_bytes, link.up_bytes]));
    let help = "Bytes at the interface of one of several links.";
    text += &metric("counter", "link_bytes_total", help, ["link", "direction"], bytes);
    let deaths = links.iter().map(|link| ([link.name.as_str()], link.deaths.into()));
    let help = "Times at which one of several links stopped working.";
    text += &metric("counter", "link_failures_total", help, ["link"], deaths);
    let count = |link: &LinkState| [link.multipath.into(), link.plain.into()];
    let connections = links.iter().flat_map(|link| by(&link.name, ["mptcp", "tcp"], count(link)));
    let help = "Connections with the ground over one of several links.";
    text += &metric("gauge", "link_connections", help, ["link", "protocol"], connections);
    let stood_in = links.iter().filter(|link| link.stood_in_s > 0);
    let stood_in =
        stood_in.flat_map(|link| by(&link.name, DIRECTIONS, [link.stood_in_down_bytes, link.stood_in_up_bytes]));
    let help = "Bytes of a standby while no other link worked.";
    text += &metric("counter", "link_stood_in_bytes_total", help, ["link", "direction"], stood_in);
    text
}

const DIRECTIONS: [&str; 2] = ["down", "up"];

/// Returns the two values of `name`, each with its second label.
fn by<'n>(name: &'n str, [one, other]: [&'n str; 2], [first, second]: [u64; 2]) -> [([&'n str; 2], u64); 2] {
    [([name, one], first), ([name, other], second)]
}

/// Writes a gauge of this run with a value for each value of `label`.
fn gauge<'n>(name: &str, label: &str, help: &str, values: impl IntoIterator<Item = (&'n str, u64)>) -> String {
    metric("gauge", name, help, [label], values.into_iter().map(|(of, value)| ([of], value)))
}

/// Writes a metric of this run, with a value for each of the `rows` of values of `labels`.
fn metric<'n, const N: usize>(
    kind: &str,
    name: &str,
    help: &str,
    labels: [&str; N],
    rows: impl IntoIterator<Item = ([&'n str; N], u64)>,
) -> String {
    let mut text = format!("# HELP longhaul_{name} {help}\n# TYPE longhaul_{name} {kind}\n");
    for (values, value) in rows {
        let labels: Vec<String> = labels.iter().zip(values).map(|(label, of)| format!("{label}=\"{of}\"")).collect();
        let _ = writeln!(text, "longhaul_{name}{{{}}} {value}", labels.join(","));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_several_links_has_its_state_and_its_bytes() {
        let link = |name: &str, alive| LinkState {
            name: name.to_owned(),
            device: format!("{name}0"),
            used: "preferred".to_owned(),
            alive,
            changed_at: 0,
            deaths: 2,
            rtt_ms: None,
            address: None,
            down_bytes: 1500,
            up_bytes: 700,
            metered: false,
            stood_in_s: if name == "geo" { 9 } else { 0 },
            stood_in_down_bytes: 60,
            stood_in_up_bytes: 5,
            multipath: 7,
            plain: 1,
            hindered: None,
        };
        let text = of_links(&[link("lte", true), link("geo", false)]);
        for line in [
            "longhaul_link_up{link=\"lte\"} 1",
            "longhaul_link_up{link=\"geo\"} 0",
            "longhaul_link_bytes_total{link=\"lte\",direction=\"up\"} 700",
            "longhaul_link_failures_total{link=\"geo\"} 2",
            "longhaul_link_connections{link=\"lte\",protocol=\"tcp\"} 1",
            "longhaul_link_stood_in_bytes_total{link=\"geo\",direction=\"down\"} 60",
        ] {
            assert!(text.contains(&format!("\n{line}\n")), "{line}\n{text}");
        }
        assert!(!text.contains("stood_in_bytes_total{link=\"lte\""), "{text}");
        assert_eq!(of_links(&[]), "");
    }

    #[test]
    fn a_program_that_does_not_respond_is_counted_as_down() {
        let nobody = Endpoint::Unix("/nonexistent/admin.sock".into());
        let problems = vec![ProblemKind::ProgramDown];
        let facts = Facts {
            counts_dns: true,
            caches_objects: true,
            envoy: Some(std::process::id()),
            problems,
            groups: Vec::new(),
            links_of: None,
        };
        let page = exposition(&nobody, &nobody, Some(&nobody), &facts);
        assert!(page.contains("\nlonghaul_problem{kind=\"program_down\"} 1\n"), "{page}");
        assert!(page.contains("\nlonghaul_problem{kind=\"link_silent\"} 0\n"), "{page}");
        assert!(page.contains("\nlonghaul_process_up{process=\"envoy\"} 0\n"), "{page}");
        assert!(page.contains("\nlonghaul_process_up{process=\"coredns\"} 0\n"), "{page}");
        assert!(page.contains("\nlonghaul_open_files{process=\"envoy\"} "), "{page}");
        let without = exposition(&nobody, &nobody, Some(&nobody), &Facts::default());
        assert!(page.contains("\nlonghaul_process_up{process=\"longhaul-objects\"} 0\n"), "{page}");
        assert!(
            !without.contains("coredns") && !without.contains("objects") && !without.contains("open_files"),
            "{without}"
        );
    }
}
