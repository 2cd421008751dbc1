//! The state of a running PEP: the report of `longhaul run` with the counters of Envoy and CoreDNS.
//!
//! `METRICS.md` describes every counter that is read here. [`problem`](Problem) holds every condition that is a problem.

mod dns;
mod page;
mod pair;
mod parents;
mod past;
mod path;
mod problem;
mod spark;
mod text;
mod traffic;
mod watch;
mod words;

use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::bill::GroupReport;
use crate::compare::Compared;
use crate::endpoint::page_at;
use crate::measure::Noticed;
use crate::report::{
    CacheFault, CacheReport, CertificateReport, ChildReport, HostReport, LinkReport, LinkState, PageReport, PairReport,
    ProblemRecord, Refusal, ResolverReport, RunReport, Sockets,
};
use crate::scrape::Scrape;
use crate::unix_http::NoPage;
use crate::why::{Minute, Reading, Saved, Today, Verdict, Way, Why, explain};
use crate::{Disk, Endpoint, OpenFiles, serves};
use dns::DnsCounts;
use longhaul_config::{AccessLog, Bytes, Validity};
pub use page::StatusPage;
use pair::PairStatus;
use parents::ParentStatus;
use past::PastProblem;
use path::Stop;
use problem::Machine;
use problem::{Problem, Warning};
use spark::{Sparks, sparks};
use traffic::{CacheCounts, Pages, Traffic};
pub use words::time;

/// The state of a running PEP. Counters start at 0 when the process that counts starts.
#[derive(Debug, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own in the JSON")]
pub struct Status {
    /// The problems; empty if there are none.
    #[serde(serialize_with = "problem::in_words")]
    problems: Vec<Problem>,
    /// Facts that may need attention.
    #[serde(serialize_with = "problem::in_words")]
    warnings: Vec<Warning>,
    /// The problems that stand, and the last ones that ended, as `longhaul run` recorded them. The last one to begin is
    /// first.
    last_problems: Vec<PastProblem>,
    /// The host name of this machine.
    host: String,
    /// The time of this state, in seconds since 1970.
    at: u64,
    /// The version of `longhaul run`.
    version: String,
    /// Its process.
    pid: u32,
    /// True while it drains before its end (SIGTERM).
    draining: bool,
    /// `edge`, `remote` or `ground`.
    role: String,
    /// The time since its start, in seconds.
    uptime_s: u64,
    /// The configuration in force.
    config: Config,
    /// The slow link, as configured.
    link: LinkReport,
    /// The same, as connections of the last minutes show it.
    link_measured: Noticed,
    /// The connections of clients that pass untouched, beside those of others (`compare`). None: it is off.
    compared: Option<Compared>,
    /// The use of the link by each group of clients, and by those in none. Empty without `clients`.
    groups: Vec<GroupReport>,
    /// Several links, the preferred one first, as the watch of `longhaul host` sees them. Empty with one.
    links: Vec<LinkState>,
    /// The sockets by their keys.
    listen: Sockets,
    /// The certificates that Envoy presents.
    certificates: Vec<Certificate>,
    /// True if this user may not read the counters of Envoy and CoreDNS.
    #[serde(skip)]
    is_hidden: bool,
    /// Envoy.
    envoy: Child,
    /// The files that Envoy has open. None if it does not run, and if this user may not see them.
    open_files: Option<OpenFiles>,
    /// CoreDNS.
    coredns: Child,
    /// The program that recodes images. None: the configuration does not have it.
    images: Option<Child>,
    /// The program that caches objects. None: the configuration does not have it.
    objects: Option<Child>,
    /// The access log.
    #[serde(skip)]
    access_log: AccessLog,
    /// The reason why it is not written or not rotated.
    #[serde(skip)]
    access_log_fault: Option<String>,
    /// Counters of Envoy; None if it does not respond.
    traffic: Option<Traffic>,
    /// The last pages, the last one first. `longhaul run` keeps them in memory, so `longhaul status` has
    /// none.
    last_pages: Vec<PageReport>,
    /// The cache on disk, as configured; None without one.
    cache: Option<CacheReport>,
    /// The reason why the run does not use its state folder.
    state_fault: Option<String>,
    /// The reason why the cache is smaller than configured, or off.
    cache_fault: Option<CacheFault>,
    /// The caching proxies of `cache.parent`; none without one, and if Envoy does not respond.
    parents: Vec<ParentStatus>,
    /// The ground in use, as `split.peer` names it. None at an edge and at a ground.
    ground: Option<String>,
    /// The other end of a pair, as `longhaul run` sees it.
    other_end: PairReport,
    /// The other end of a pair; None for a box alone, and if Envoy does not respond.
    pair: Option<PairStatus>,
    /// Counters of CoreDNS; None if `listen.dns` or `listen.metrics` is off, or if it does not respond.
    dns: Option<DnsCounts>,
    /// The resolvers that are watched; none at a remote.
    resolvers: Vec<ResolverReport>,
    /// True if DNS queries came and every one of them failed.
    every_query_fails: bool,
    /// True if clients use DNS over https or TLS.
    #[serde(skip)]
    asks_others: bool,
    /// The part of a request's way that costs the time. None before the run has measured.
    why: Option<Why>,
    /// The use of the link in the last hour, by minutes. Minutes in which nothing ran are absent.
    hour: Vec<Minute>,
    /// The path of a request with its lights.
    path: Vec<Stop>,
    /// The charts of that hour.
    #[serde(skip)]
    sparks: Sparks,
    /// The savings since midnight (UTC).
    saved_today: Today,
    /// The counters of now. None if Envoy does not respond.
    #[serde(skip)]
    reading: Option<Reading>,
}

/// The time for which nobody may listen at the admin socket while one Envoy takes over from another.
const TAKES_OVER: Duration = Duration::from_millis(2500);

/// The configuration in force.
#[derive(Debug, Serialize)]
struct Config {
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

/// A certificate that Envoy presents.
#[derive(Debug, Serialize)]
struct Certificate {
    /// Its names, or its place in the pair.
    pub of: String,
    /// Its file.
    pub file: PathBuf,
    /// Its beginning and its end.
    #[serde(flatten)]
    pub validity: Validity,
    /// Whole days to its end. Negative after it.
    pub days_left: i64,
}

/// A child process of a run.
#[derive(Debug, Serialize)]
struct Child {
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

/// Returns the folder of the access log. None if it is no file.
fn log_folder(log: &AccessLog) -> Option<&Path> {
    match log {
        AccessLog::File(path) => path.parent(),
        AccessLog::Off | AccessLog::Stderr => None,
    }
}

impl Status {
    /// Queries each part. A part that does not respond is a problem in the result, not an error.
    pub fn gather(run: RunReport) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let machine = Machine {
            now_s: i64::try_from(now).unwrap_or(i64::MAX),
            host_faults: HostReport::faults(&run.file, now),
            missing_addresses: run.set_up.proxy_addresses.iter().copied().filter(|at| is_missing(*at)).collect(),
            log_free: log_folder(&run.access_log).and_then(|folder| Disk::of(folder).ok()).map(|disk| Bytes(disk.free)),
            cache_is_read_only: run.set_up.cache.as_ref().is_some_and(|cache| is_read_only(&cache.dir)),
            cache_free: run
                .set_up
                .cache
                .as_ref()
                .and_then(|cache| Disk::of(&cache.dir).ok())
                .map(|disk| Bytes(disk.free)),
        };
        let lists_names = run.set_up.lists_names;
        let mut status = Self::of(run, now);
        status.ask(lists_names);
        status.problems = problem::problems(&status, &machine);
        status.warnings = problem::warnings(&status, &machine);
        status.path = path::path(&status);
        status
    }

    /// Returns true if there is no problem.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the status in words, for a terminal. Its first line is `ok` or a problem.
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// Returns the explanation of a slow box, for a terminal. Problems come first, because they explain more.
    pub fn why_text(&self) -> String {
        text::why(self)
    }

    /// Returns the same as JSON.
    ///
    /// # Errors
    /// None is known.
    pub fn why_json(&self) -> serde_json::Result<String> {
        let problems: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
        serde_json::to_string_pretty(&serde_json::json!({ "problems": problems, "why": self.why }))
    }

    /// Returns the screen of `status --watch` in `width` columns.
    pub fn watch_text(&self, width: usize) -> String {
        watch::screen(self, width)
    }

    /// Returns true if some part takes more time than it should.
    pub fn is_slow(&self) -> bool {
        self.why.as_ref().is_some_and(|why| why.verdict == Verdict::Slow)
    }

    /// Returns the status as JSON.
    ///
    /// # Errors
    /// None is known.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    /// Returns what the run reports, at `now` in seconds since 1970, before any query.
    fn of(run: RunReport, now: u64) -> Self {
        let since = |then: u64| now.saturating_sub(then);
        let child = |report: ChildReport| Child {
            up: false,
            version: None,
            pid: report.pid,
            uptime_s: report.started.map(since),
            restarts: report.restarts,
            last_end: report.last_end,
        };
        let now_s = i64::try_from(now).unwrap_or(i64::MAX);
        let why = why(&run);
        let last_problems: Vec<_> = run.problems.into_iter().map(|one| PastProblem::of(one, now)).collect();
        let links = HostReport::links(&run.file, now);
        let sparks = sparks(&run.costs.hour, &last_problems, now);
        Self {
            problems: Vec::new(),
            warnings: Vec::new(),
            last_problems,
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            at: now,
            version: run.version,
            pid: run.pid,
            draining: run.draining,
            role: run.role,
            uptime_s: since(run.started),
            config: Config {
                is_the_file: fs::read(&run.file)
                    .is_ok_and(|bytes| hex::encode(Sha256::digest(bytes)) == run.config_sha256),
                file: run.file,
                sha256: run.config_sha256,
                in_force_s: since(run.in_force_since),
                changes: run.changes,
                refused: run.refused,
            },
            link: run.set_up.link,
            link_measured: run.link,
            compared: run.compared,
            groups: run.groups,
            links,
            certificates: run.set_up.certificates.into_iter().map(|report| Certificate::of(report, now_s)).collect(),
            is_hidden: false,
            open_files: run.envoy.pid.and_then(OpenFiles::of),
            envoy: child(run.envoy),
            coredns: child(run.coredns),
            images: run.images.map(|report| Child { up: report.pid.is_some(), ..child(report) }),
            objects: run.objects.map(|report| Child { up: report.pid.is_some(), ..child(report) }),
            access_log: run.access_log,
            access_log_fault: run.access_log_fault,
            traffic: None,
            last_pages: run.pages,
            cache: run.set_up.cache,
            state_fault: run.state_fault,
            cache_fault: run.cache_fault,
            parents: Vec::new(),
            ground: run.ground,
            other_end: run.other_end,
            pair: None,
            dns: None,
            resolvers: run.dns.resolvers,
            every_query_fails: run.dns.every_query_fails,
            asks_others: run.dns.asks_others,
            why,
            path: Vec::new(),
            sparks,
            hour: run.costs.hour,
            saved_today: run.costs.today,
            reading: None,
            listen: run.listen,
        }
    }

    /// Returns the present problems as records that begin now, or when the problem itself says.
    pub fn present(&self) -> Vec<ProblemRecord> {
        let record = |problem: &Problem| {
            let (kind, of) = problem.identity();
            let before = match problem {
                Problem::GroundSilent { for_s, .. } => *for_s,
                _ => 0,
            };
            let began = self.at.saturating_sub(before);
            ProblemRecord { kind, of, text: problem.lasting_words(), began, ended: None }
        };
        self.problems.iter().map(record).collect()
    }

    /// Queries Envoy and CoreDNS. Their own sockets refuse other users of this machine, who read `listen.metrics`.
    fn ask(&mut self, lists_names: bool) {
        let admin = &self.listen.admin;
        match self.server_info() {
            Ok(info) => {
                let stats = admin.page("/stats/prometheus").ok();
                self.heard_of_envoy(&serde_json::from_str(&info).unwrap_or_default());
                if let Some(stats) = stats {
                    let stats = Scrape::parse(&stats);
                    self.counted_by_envoy(&stats);
                    let program =
                        self.listen.objects_metrics.as_ref().and_then(|metrics| metrics.page("/metrics").ok());
                    if let Some(program) = program {
                        self.counted_by_objects(&Scrape::parse(&program), &stats);
                    }
                }
                self.ask_coredns(lists_names);
            }
            Err(NoPage::Forbidden) => {
                let public = self.listen.metrics.and_then(|metrics| page_at(metrics, "/metrics"));
                self.heard_in_public(public.as_deref().map(Scrape::parse).as_ref(), lists_names);
            }
            Err(NoPage::Absent) => self.ask_coredns(lists_names),
        }
    }

    /// Returns the page with Envoy's version. An Envoy that takes over opens the socket after the other one has closed it.
    fn server_info(&self) -> Result<String, NoPage> {
        let began = Instant::now();
        loop {
            match self.listen.admin.page("/server_info") {
                Err(NoPage::Absent) if self.envoy.pid.is_some() && began.elapsed() < TAKES_OVER => {
                    thread::sleep(TAKES_OVER / 20);
                }
                got => return got,
            }
        }
    }

    fn heard_of_envoy(&mut self, info: &serde_json::Value) {
        self.envoy.up = serves(info);
        // REVISION/VERSION/...
        let version = info.get("version").and_then(|version| version.as_str());
        self.envoy.version = version.and_then(|version| version.split('/').nth(1)).map(str::to_owned);
    }

    /// Returns the counters of now, for the figures of a minute. None if Envoy does not respond.
    #[must_use]
    pub fn reading(&self) -> Option<Reading> {
        Some(Reading { requests: self.requests(), saved: self.saved(), ..self.reading.clone()? })
    }

    fn requests(&self) -> u64 {
        self.traffic.as_ref().map_or(0, |traffic| traffic.clients.requests + traffic.clients.passed_through)
    }

    /// Returns what was saved since the programs started.
    fn saved(&self) -> Saved {
        let pages = self.traffic.as_ref().and_then(|traffic| traffic.pages.as_ref());
        let cache = self.traffic.as_ref().and_then(|traffic| traffic.cache.as_ref()).map_or(0, |cache| cache.hits);
        let compressed = self
            .traffic
            .as_ref()
            .map_or(0, |traffic| traffic.clients.bytes_to_compress.saturating_sub(traffic.clients.bytes_compressed));
        let headers =
            self.pair.as_ref().map_or(0, |pair| pair.headers.plain_bytes.saturating_sub(pair.headers.packed_bytes));
        // A remote's clients wait for no round trip where it has the name, the object or the response.
        let at_remote = (self.role == "remote").then(|| {
            let ahead = self.pair.as_ref().and_then(|pair| pair.bundled.as_ref()).map_or(0, |bundled| bundled.objects);
            self.dns.as_ref().map_or(0, |dns| dns.remembered) + ahead + cache
        });
        Saved {
            round_trips: pages.map_or(0, |pages| pages.round_trips_saved) + at_remote.unwrap_or(0),
            bytes: pages.map_or(0, |pages| pages.link_bytes_saved) + compressed + headers,
            from_cache: cache,
        }
    }

    fn counted_by_envoy(&mut self, scrape: &Scrape) {
        self.reading = Some(Reading::of_envoy(&self.role, scrape));
        self.traffic = Some(Traffic::of(&self.role, scrape));
        self.parents = ParentStatus::all(scrape);
        self.pair = PairStatus::of(&self.role, scrape).map(|pair| pair.seen_by_the_kernel(&self.other_end));
    }

    /// Takes the counts of longhaul-objects, and of the reader of its files in Envoy.
    fn counted_by_objects(&mut self, program: &Scrape, envoy: &Scrape) {
        let (Some(traffic), Some(cache)) = (&mut self.traffic, &self.cache) else { return };
        if let Some(counts) = CacheCounts::of_objects(program, envoy, cache.size_bytes) {
            traffic.cache = Some(counts);
        }
    }

    /// Takes the state from the page of `listen.metrics`. Without it, only the processes are visible.
    fn heard_in_public(&mut self, scrape: Option<&Scrape>, lists_names: bool) {
        let Some(scrape) = scrape else {
            self.envoy.up = self.envoy.pid.is_some();
            self.coredns.up = self.coredns.pid.is_some();
            self.is_hidden = true;
            return;
        };
        let up = |name| scrape.sum_of("longhaul_process_up", "process", name) == 1;
        self.envoy.up = up("envoy");
        if self.envoy.up {
            self.counted_by_envoy(scrape);
            self.counted_by_objects(scrape, scrape);
        }
        if self.listen.dns.is_none() && self.listen.dns_metrics.is_none() {
            self.coredns.up = self.coredns.pid.is_some();
        } else if up("coredns") {
            self.counted_by_coredns(scrape, lists_names);
        }
    }

    fn ask_coredns(&mut self, lists_names: bool) {
        // A run of an earlier version has its metrics at `listen.metrics`.
        let earlier = || self.listen.dns.as_ref().and(self.listen.metrics.map(Endpoint::Tcp));
        let Some(metrics) = self.listen.dns_metrics.clone().or_else(earlier) else {
            // Without metrics, only the process of CoreDNS is visible.
            self.coredns.up = self.coredns.pid.is_some();
            return;
        };
        if let Ok(page) = metrics.page("/metrics") {
            self.counted_by_coredns(&Scrape::parse(&page), lists_names);
        }
    }

    fn counted_by_coredns(&mut self, scrape: &Scrape, lists_names: bool) {
        self.coredns.up = true;
        self.coredns.version = scrape.label("coredns_build_info", "version");
        self.dns = Some(DnsCounts::of(scrape, lists_names));
        if let Some(reading) = &mut self.reading {
            reading.add_coredns(&self.role, scrape);
        }
    }

    /// Returns true if CoreDNS's health check of the proxy at `address` fails. None if there is no such check.
    fn is_unreachable(&self, address: IpAddr) -> Option<bool> {
        let dns = self.dns.as_ref()?;
        let is_there = |proxies: &[String]| {
            proxies.iter().any(|proxy| proxy.parse::<SocketAddr>().is_ok_and(|socket| socket.ip() == address))
        };
        if is_there(&dns.proxies_down) { Some(true) } else { is_there(&dns.proxies_up).then_some(false) }
    }
}

impl Certificate {
    fn of(report: CertificateReport, now_s: i64) -> Self {
        let days_left = report.validity.days_left(now_s);
        Self { of: report.of, file: report.file, validity: report.validity, days_left }
    }
}

/// Explains the last minute of a run. A remote needs the figures of its ground.
fn why(run: &RunReport) -> Option<Why> {
    let link = &run.set_up.link;
    let way = Way {
        is_alone: run.role == "edge",
        rtt_us: link.rtt_ms.saturating_mul(1000),
        down_bps: link.down_bps,
        up_bps: link.up_bps,
    };
    let ground = run.other_end.ground.costs.as_ref().filter(|_| run.role == "remote");
    let measured = ground.map_or_else(|| run.costs.measured.clone(), |ground| run.costs.measured.with_ground(ground));
    explain(&measured, &way)
}

/// Returns true if the filesystem of `folder`, or of the place where it would be made, takes no writes.
fn is_read_only(folder: &Path) -> bool {
    let there = folder.ancestors().find_map(|folder| rustix::fs::statvfs(folder).ok());
    there.is_some_and(|of| of.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// Returns true if no interface has `address`. The kernel binds other addresses only where `ip_nonlocal_bind` allows it.
fn is_missing(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_err_and(|error| error.kind() == std::io::ErrorKind::AddrNotAvailable)
}

#[cfg(test)]
mod tests;
