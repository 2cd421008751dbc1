//! The report of a run on itself: a small file in its state folder, for `longhaul status` and other programs.
//!
//! Envoy and CoreDNS publish their own counters. This report holds the facts that neither knows: the file in force, the
//! last refusal, and the deaths of the children.

mod dns;
mod folders;
mod host;
mod pages;
mod pair;
mod problems;
mod set_up;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use longhaul_config::{AccessLog, Settings};
use serde::{Deserialize, Serialize};

pub(crate) use folders::{SERVICE_FILE, SERVICE_FOLDER, own_state_folders};
use folders::{SERVICE_SPARE_FOLDER, folders_of_runs};
pub(crate) use set_up::{CacheReport, CertificateReport, LinkReport};
pub use {
    dns::{DnsReport, ResolverReport},
    folders::{default_folder, true_addresses_of_service},
    host::{HostFault, HostReport, LinkState},
    pages::{PageLoad, PageReport},
    pair::{GroundReport, PairReport, Silence},
    problems::{ProblemKind, ProblemRecord},
    set_up::{CacheFault, SetUp},
};

use crate::bill::GroupReport;
use crate::compare::Compared;
use crate::endpoint::Endpoint;
use crate::measure::Noticed;
use crate::why::CostReport;

/// The longest report that is read, in bytes. The message of a refusal is its longest part.
const MAX_REPORT_BYTES: u64 = 1 << 20;

/// The present state of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReport {
    /// The version of this program.
    pub version: String,
    /// `edge`, `remote` or `ground`.
    pub role: String,
    /// The process of `longhaul run`.
    pub pid: u32,
    /// True while the run drains before its end.
    #[serde(default)]
    pub draining: bool,
    /// The start time of that process as the kernel counts it. It tells the process from a later one with the same
    /// number.
    pub process_start: u64,
    /// The time of the start, in seconds since 1970.
    pub started: u64,
    /// The configuration file.
    pub file: PathBuf,
    /// SHA-256 of the configuration file that is in force, in hex.
    pub config_sha256: String,
    /// The time since when it is in force, in seconds since 1970.
    pub in_force_since: u64,
    /// Changes applied since the start.
    pub changes: u32,
    /// The last change that was refused, if any was.
    pub refused: Option<Refusal>,
    /// The sockets of the run.
    pub listen: Sockets,
    /// The facts of the configuration in force. Empty from a run of an earlier version.
    #[serde(default)]
    pub set_up: SetUp,
    /// The resolvers, as this run sees them.
    #[serde(default)]
    pub dns: DnsReport,
    /// The link, as this run measures it.
    #[serde(default)]
    pub link: Noticed,
    /// The parts of a request's time, as this run measures them, and the use of the link.
    #[serde(default)]
    pub costs: CostReport,
    /// The ground in use, as `split.peer` names it. None at an edge, at a ground, and if the ground dials.
    #[serde(default)]
    pub ground: Option<String>,
    /// The other end of a pair, as this run sees it.
    #[serde(default)]
    pub other_end: PairReport,
    /// The problems that stand, and the last ones that ended. The last one to begin is first.
    #[serde(default)]
    pub problems: Vec<ProblemRecord>,
    /// The reason why the run does not use its state folder.
    #[serde(default)]
    pub state_fault: Option<String>,
    /// The reason why the cache is smaller than configured, or off.
    #[serde(default)]
    pub cache_fault: Option<CacheFault>,
    /// The groups of `compare`, as this run measures them. None: it is off.
    #[serde(default)]
    pub compared: Option<Compared>,
    /// The use of the link by each group of clients, and by those in none. Empty without `clients`.
    #[serde(default)]
    pub groups: Vec<GroupReport>,
    /// The folder of `log.who`. None: it is off.
    #[serde(default)]
    pub who: Option<PathBuf>,
    /// The last pages, the last one first. The file does not hold them: the status page alone shows them.
    #[serde(skip)]
    pub pages: Vec<PageReport>,
    /// The access log.
    #[serde(default)]
    pub access_log: AccessLog,
    /// The reason why the access log is not written or not rotated.
    #[serde(default)]
    pub access_log_fault: Option<String>,
    /// Envoy.
    pub envoy: ChildReport,
    /// CoreDNS. It also runs if `listen.dns` is off, as Envoy's resolver.
    pub coredns: ChildReport,
    /// The program that recodes images. None: the configuration does not have it.
    #[serde(default)]
    pub images: Option<ChildReport>,
    /// The program that caches objects. None: the configuration does not have it.
    #[serde(default)]
    pub objects: Option<ChildReport>,
}

impl RunReport {
    /// The name of the file in the state folder.
    pub const FILE: &str = "run.json";

    /// Finds the run of `config`, or the run in the folder `state`. Without both, finds the only run of this user. Root
    /// finds the runs of all users.
    ///
    /// # Errors
    /// No such run, several of them, or a report that this user may not read.
    pub fn find(config: Option<&Path>, state: Option<&Path>) -> Result<Self, NoRun> {
        match (config, state) {
            (_, Some(folder)) => read(folder)?
                .ok_or_else(|| NoRun::Nothing(format!("no `longhaul run` has the state folder {}", folder.display()))),
            (Some(config), None) => read(&default_folder(config))?.or_else(|| of_anybody(config)).ok_or_else(|| {
                NoRun::Nothing(format!(
                    "{} is not running. Add --state DIR if the run was started with it, and use root for a run of another user",
                    config.display()
                ))
            }),
            (None, None) => the_only_one(),
        }
    }
}

/// A change that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The time, in seconds since 1970.
    pub at: u64,
    /// The message to the operator.
    pub why: String,
    /// True if the files are still the refused ones.
    pub standing: bool,
}

/// The sockets by their keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sockets {
    /// `listen.http`. None at a ground.
    pub http: Option<longhaul_config::Sockets>,
    /// `split.listen` of a ground.
    pub split: Option<SocketAddr>,
    /// `listen.tls`
    pub tls: Option<longhaul_config::Sockets>,
    /// `listen.dns`
    pub dns: Option<longhaul_config::Sockets>,
    /// Envoy's admin interface.
    pub admin: Endpoint,
    /// CoreDNS's own metrics. None if it counts nothing, and from a run of an earlier version.
    #[serde(default)]
    pub dns_metrics: Option<Endpoint>,
    /// The counters of longhaul-objects. None if it does not run, and from a run of an earlier version.
    #[serde(default)]
    pub objects_metrics: Option<Endpoint>,
    /// `listen.metrics`, if it is served.
    pub metrics: Option<SocketAddr>,
    /// `listen.status`, if the status page is served.
    pub status: Option<SocketAddr>,
}

/// A child process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildReport {
    /// Its process. None while it waits for a restart.
    pub pid: Option<u32>,
    /// The start of that process, in seconds since 1970.
    pub started: Option<u64>,
    /// The number of restarts after a death.
    pub restarts: u32,
    /// The cause of its last death.
    pub last_end: Option<String>,
}

impl Sockets {
    /// Returns the sockets of a run with the Unix sockets of Envoy's admin interface and of CoreDNS's metrics.
    pub fn of(settings: &Settings, admin: PathBuf, dns_metrics: PathBuf) -> Self {
        let listen = &settings.listen;
        let (http, split) = if settings.role.meets_clients() {
            (Some(listen.http.clone()), None)
        } else {
            (None, Some(listen.http.first()))
        };
        Self {
            http,
            split,
            tls: listen.tls.clone(),
            dns: listen.dns.clone(),
            admin: Endpoint::Unix(admin),
            dns_metrics: settings.counts_dns().then_some(Endpoint::Unix(dns_metrics)),
            objects_metrics: None,
            metrics: None,
            status: None,
        }
    }
}

/// The reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum NoRun {
    /// No run was found, for this file or at all.
    #[error("{0}")]
    Nothing(String),
    /// There are several runs, and the operator named none.
    #[error("{} configurations run on this machine; name one:\n{}", .0.len(), list(.0))]
    Several(Vec<PathBuf>),
    /// The folder or file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        error: std::io::Error,
    },
}

pub(crate) fn list(files: &[PathBuf]) -> String {
    files.iter().map(|file| format!("  {}", file.display())).collect::<Vec<_>>().join("\n")
}

/// Returns the run of `longhaul.service`, if this user may read its report.
fn service() -> Option<RunReport> {
    [SERVICE_FOLDER, SERVICE_SPARE_FOLDER].into_iter().find_map(|folder| read(Path::new(folder)).ok().flatten())
}

/// Returns the run of `config` among all that this user may see.
fn of_anybody(config: &Path) -> Option<RunReport> {
    let config = fs::canonicalize(config).ok()?;
    all().into_iter().find(|run| fs::canonicalize(&run.file).is_ok_and(|file| file == config))
}

/// Returns every run that this user may see. Folders that hold no report of a live run are skipped: a user must not be
/// able to hinder root.
fn all() -> Vec<RunReport> {
    folders_of_runs().iter().filter_map(|folder| read(folder).ok().flatten()).chain(service()).collect()
}

fn the_only_one() -> Result<RunReport, NoRun> {
    let mut running = all();
    match running.len() {
        0 => Err(NoRun::Nothing(
            "no `longhaul run` of this user was found. Add --state DIR if the run was started with it".to_owned(),
        )),
        1 => running.pop().ok_or_else(|| NoRun::Nothing(String::new())),
        _ => Err(NoRun::Several(running.into_iter().map(|report| report.file).collect())),
    }
}

/// Returns the report in `folder`. None if its process does not run any more, or if another user wrote it.
fn read(folder: &Path) -> Result<Option<RunReport>, NoRun> {
    let path = folder.join(RunReport::FILE);
    let (text, owner) = match read_file(&path) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(NoRun::Unreadable { path, error }),
    };
    let report: RunReport = serde_json::from_str(&text)
        .map_err(|error| NoRun::Unreadable { path, error: std::io::Error::other(error.to_string()) })?;
    let is_live = process_start(report.pid) == Some(report.process_start) && process_owner(report.pid) == Some(owner);
    Ok(is_live.then_some(report))
}

/// Returns the text of a report and its owner. A pipe or a file without an end could stop root.
fn read_file(path: &Path) -> std::io::Result<(String, u32)> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_file() || metadata.len() > MAX_REPORT_BYTES {
        return Err(std::io::Error::other("it is not a report of `longhaul run`"));
    }
    Ok((fs::read_to_string(path)?, metadata.uid()))
}

/// Returns the start of process `pid`, in clock ticks since the machine's start.
pub fn process_start(pid: u32) -> Option<u64> {
    let process = procfs::process::Process::new(i32::try_from(pid).ok()?).ok()?;
    process.stat().ok().map(|stat| stat.starttime)
}

/// Returns the user whose rights process `pid` has. The owner of its folder in /proc may be root instead.
fn process_owner(pid: u32) -> Option<u32> {
    procfs::process::Process::new(i32::try_from(pid).ok()?).ok()?.status().ok().map(|status| status.euid)
}
