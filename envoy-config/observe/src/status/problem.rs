//! The problems and warnings of a running box: every condition, and its words in the text, the JSON and on the page.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use longhaul_config::units::Bytes;
use longhaul_config::{AccessLog, Lifetime};
use serde::Serializer;

use super::{Child, Status};
use crate::OpenFiles;
use crate::measure::{Misfit, Silent};
use crate::report::{CacheFault, HostFault, ProblemKind, Silence};

/// A disk with less room than Envoy writes at once loses lines of the access log.
const LOG_FULL: Bytes = Bytes(64 << 10);

/// A fault that the operator must remove. `longhaul status` exits 1 while there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    /// A box at its end.
    #[error("this box drains before its end: it serves what is under way, and refuses new connections soon")]
    Draining,
    /// A child process.
    #[error("{name} does not respond{}", cause(last_end.as_deref()))]
    ChildDown {
        /// Envoy, CoreDNS or longhaul-images.
        name: &'static str,
        /// The cause of its last death.
        last_end: Option<String>,
    },
    /// A refused change.
    #[error("the present files were refused; an earlier configuration is in force: `longhaul check` shows the reason")]
    ChangeRefused,
    /// The pair is cut.
    #[error("the ground does not respond: {}", why.as_deref().unwrap_or("clients of this remote have no connection over the link"))]
    GroundDown {
        /// The reason why the last handshake failed, with its cure.
        why: Option<String>,
    },
    /// The link or the ground is silent.
    #[error("the ground has not responded for {for_s} s: {}", silence(*kind))]
    GroundSilent {
        /// The part that is silent.
        kind: Silent,
        /// The time of the silence, in seconds.
        for_s: u64,
    },
    /// No caching proxy responds.
    #[error("no proxy of `cache.parent` responds: requests over http fail")]
    ParentsDown,
    /// Listed names are not steered.
    #[error("no name is steered{}", unsteered(proxies))]
    NotSteering {
        /// The sockets of the proxy that do not respond to CoreDNS's health check.
        proxies: Vec<String>,
    },
    /// A list of names that CoreDNS does not read.
    #[error("the list {file} is refused or missing, and the list before is in use; `longhaul check` names the line")]
    ListRefused {
        /// The file.
        file: String,
    },
    /// A dead resolver.
    #[error("the resolver {address} (`upstream.resolvers`) does not respond")]
    ResolverDown {
        /// The resolver.
        address: SocketAddr,
    },
    /// A resolver responds, but its responses are failures.
    #[error("every DNS query of late has failed: the resolvers of `upstream.resolvers` respond, but find no name")]
    EveryQueryFails,
    /// A certificate that browsers or the other end refuse, or will refuse soon.
    #[error("the certificate of {of} {}; {}", lifetime(*left), cure(*left, file))]
    Certificate {
        /// Its names.
        of: String,
        /// Its file.
        file: PathBuf,
        /// The time that it has left.
        left: Lifetime,
    },
    /// An address that clients cannot reach.
    #[error("{address} (`proxy.addresses`) is on no interface of this machine, and the proxy does not respond there")]
    AddressMissing {
        /// The address.
        address: IpAddr,
    },
    /// The disk of the state folder is full, or read-only.
    #[error("{0}. Make room there, and then: systemctl restart longhaul")]
    StateElsewhere(String),
    /// The packet rules do not lead clients to the listeners.
    #[error("{}", packets(clients, fault))]
    Packets {
        /// The interface to the clients.
        clients: String,
        /// The fault.
        fault: HostFault,
    },
    /// The machine has no room for the cache.
    #[error("the cache is {}: {}. With room, it is complete again within 30 s", size(.0.size_bytes), .0.why)]
    CacheCut(CacheFault),
    /// The cache cannot grow to its size. Envoy aborts the responses that it caches on a full disk.
    #[error(
        "the disk of {} has {free} left and the cache holds {held}, but `cache.size` is {size}: on a full disk, responses break off",
        dir.display()
    )]
    CacheDisk {
        /// `cache.dir`
        dir: PathBuf,
        /// Its free bytes.
        free: Bytes,
        /// The bytes in the cache.
        held: Bytes,
        /// `cache.size`
        size: Bytes,
    },
    /// The access log is not written or not rotated.
    #[error("the access log cannot be written or rotated: {fault}. Clients are served without it")]
    AccessLog {
        /// The file and the system's reason.
        fault: String,
    },
    /// The disk of the access log is full.
    #[error("the disk of {} is full: lines of the access log are lost, and clients are served; shorten `log.keep`", file.display())]
    AccessLogDisk {
        /// The file.
        file: PathBuf,
    },
}

impl Problem {
    /// Returns its kind, and the part that has it. Both stay the same until it ends.
    pub(super) fn identity(&self) -> (ProblemKind, String) {
        match self {
            Self::Draining => (ProblemKind::Draining, String::new()),
            Self::ChildDown { name, .. } => (ProblemKind::ProgramDown, (*name).to_owned()),
            Self::ChangeRefused => (ProblemKind::ChangeRefused, String::new()),
            Self::GroundDown { .. } => (ProblemKind::GroundDown, String::new()),
            Self::GroundSilent { kind: Silent::Link, .. } => (ProblemKind::LinkSilent, String::new()),
            Self::GroundSilent { kind: Silent::Program, .. } => (ProblemKind::GroundSilent, String::new()),
            Self::ParentsDown => (ProblemKind::ParentsDown, String::new()),
            Self::NotSteering { .. } => (ProblemKind::NotSteering, String::new()),
            Self::ListRefused { file } => (ProblemKind::ListRefused, file.clone()),
            Self::ResolverDown { address } => (ProblemKind::ResolverDown, address.to_string()),
            Self::EveryQueryFails => (ProblemKind::EveryQueryFails, String::new()),
            Self::Certificate { of, .. } => (ProblemKind::Certificate, of.clone()),
            Self::AddressMissing { address } => (ProblemKind::AddressMissing, address.to_string()),
            Self::Packets { clients, fault: HostFault::Gone { .. } } => (ProblemKind::RulesGone, clients.clone()),
            Self::Packets { clients, fault: HostFault::Dropped { .. } } => {
                (ProblemKind::PacketsDropped, clients.clone())
            }
            Self::Packets { clients, fault: HostFault::Redirected { .. } } => {
                (ProblemKind::PacketsRedirected, clients.clone())
            }
            Self::CacheDisk { .. } => (ProblemKind::CacheDisk, String::new()),
            Self::AccessLog { .. } => (ProblemKind::AccessLog, String::new()),
            Self::AccessLogDisk { .. } => (ProblemKind::AccessLogDisk, String::new()),
            Self::StateElsewhere(_) => (ProblemKind::StateElsewhere, String::new()),
            Self::CacheCut(_) => (ProblemKind::CacheCut, String::new()),
        }
    }

    /// Returns its words without figures that change while it stands.
    pub(super) fn lasting_words(&self) -> String {
        match self {
            Self::GroundSilent { kind, .. } => format!("the ground does not respond: {}", silence(*kind)),
            Self::CacheDisk { dir, size, .. } => {
                format!("the disk of {} has no room for `cache.size` {size}", dir.display())
            }
            Self::Packets { clients, fault: HostFault::Dropped { ports, by, cure, .. } } => {
                format!(
                    "packets of clients behind {clients} to port {ports} do not arrive: {} drops them. {cure}",
                    firewall(by.as_deref())
                )
            }
            other => other.to_string(),
        }
    }
}

/// A fact that may need attention, and that does not hinder clients now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Warning {
    /// A certificate that should be renewed.
    #[error("the certificate of {of} ends in {days} days; renew {}", file.display())]
    CertificateEndsSoon {
        /// Its names.
        of: String,
        /// Its file.
        file: PathBuf,
        /// Whole days until its end.
        days: i64,
    },
    /// A change that the run has not looked at yet.
    #[error("the configuration file changed a moment ago and is not yet in force")]
    ChangePending,
    /// The numbers of `link:` are off by half or more. Every setting of the transport follows them.
    #[error("{0}")]
    LinkMisfit(Misfit),
    /// A caching proxy that does not respond, while another one does.
    #[error("{address} (`cache.parent`) does not respond; the other proxies serve its URLs")]
    ParentDown {
        /// Its address and port.
        address: String,
    },
    /// Envoy comes close to its limit of open files. At the limit, clients get errors.
    #[error(
        "Envoy has {} of {} files open; at the limit, clients get errors. Raise it (systemd: LimitNOFILE={}), or lower `limits.connections` and `limits.urls`",
        .0.open, .0.limit, .0.limit.saturating_mul(2)
    )]
    ManyFiles(OpenFiles),
    /// Another user of the machine, and no metrics page.
    #[error("this user may not read the counters: run `longhaul status` as root or as the user of the run")]
    Hidden,
    /// The groups of `compare` are not measured.
    #[error("`compare` measures nothing: {0}")]
    NothingCompared(String),
    /// An address behind a NAT or load balancer, or a mistake.
    #[error(
        "{address} (`proxy.addresses`) is on no interface of this machine, and no health check shows that clients reach it"
    )]
    AddressElsewhere {
        /// The address.
        address: IpAddr,
    },
}

/// The facts of this machine at one time that the problems depend on.
#[derive(Debug, Clone, Default)]
pub(super) struct Machine {
    /// The time, in seconds since 1970.
    pub(super) now_s: i64,
    /// The proxy's addresses that no interface has.
    pub(super) missing_addresses: Vec<IpAddr>,
    /// The free bytes of the access log's disk.
    pub(super) log_free: Option<Bytes>,
    /// The faults of the packet rules, with the interface to the clients.
    pub(super) host_faults: Vec<(String, HostFault)>,
    /// The free bytes of the cache's disk.
    pub(super) cache_free: Option<Bytes>,
}

/// Returns the problems of `status`, in the order in which an operator should look at them.
pub(super) fn problems(status: &Status, machine: &Machine) -> Vec<Problem> {
    // The listeners close and the processes end, as they should.
    if status.draining {
        return vec![Problem::Draining];
    }
    let down = |name, child: &Child| (!child.up).then(|| Problem::ChildDown { name, last_end: child.last_end.clone() });
    let refused = status.config.refused.as_ref().is_some_and(|refused| refused.standing);
    let mut found: Vec<Problem> = Vec::new();
    found.extend(down("Envoy", &status.envoy));
    found.extend(down("CoreDNS", &status.coredns));
    found.extend(status.images.as_ref().and_then(|images| down("longhaul-images", images)));
    found.extend(refused.then_some(Problem::ChangeRefused));
    found.extend(ground(status, machine));
    let no_parent = !status.parents.is_empty() && status.parents.iter().all(|parent| !parent.up);
    found.extend(no_parent.then_some(Problem::ParentsDown));
    let resolvers = status.resolvers.iter().filter(|resolver| !resolver.up);
    found.extend(resolvers.map(|resolver| Problem::ResolverDown { address: resolver.address }));
    // Silent resolvers explain failed queries.
    let silent = found.iter().any(|problem| {
        matches!(problem, Problem::ResolverDown { .. } | Problem::GroundDown { .. } | Problem::GroundSilent { .. })
    });
    found.extend((status.every_query_fails && !silent).then_some(Problem::EveryQueryFails));
    let missing = machine.missing_addresses.iter().filter(|address| status.is_unreachable(**address) == Some(true));
    found.extend(missing.map(|address| Problem::AddressMissing { address: *address }));
    if let Some(dns) = status.dns.as_ref().filter(|dns| dns.steering == Some(false)) {
        found.push(Problem::NotSteering { proxies: dns.proxies_down.clone() });
    }
    let refused_lists = status.dns.iter().flat_map(|dns| dns.lists_refused.iter());
    found.extend(refused_lists.map(|file| Problem::ListRefused { file: file.clone() }));
    found.extend(status.certificates.iter().filter_map(|certificate| {
        let left = certificate.validity.judge(machine.now_s);
        let bad = matches!(left, Lifetime::NotYet | Lifetime::Ending { .. } | Lifetime::Expired);
        bad.then(|| Problem::Certificate { of: certificate.of.clone(), file: certificate.file.clone(), left })
    }));
    let of_host = machine.host_faults.iter().cloned();
    found.extend(of_host.map(|(clients, fault)| Problem::Packets { clients, fault }));
    found.extend(status.state_fault.clone().map(Problem::StateElsewhere));
    found.extend(status.cache_fault.clone().map(Problem::CacheCut));
    found.extend(cache_disk(status, machine));
    found.extend(access_log(status, machine));
    found
}

fn access_log(status: &Status, machine: &Machine) -> Option<Problem> {
    if let Some(fault) = status.access_log_fault.clone() {
        return Some(Problem::AccessLog { fault });
    }
    let AccessLog::File(file) = &status.access_log else { return None };
    (machine.log_free? < LOG_FULL).then(|| Problem::AccessLogDisk { file: file.clone() })
}

/// Only a remote needs the other end. A ground may wait for remotes for any time.
fn ground(status: &Status, machine: &Machine) -> Option<Problem> {
    let pair = status.pair.as_ref().filter(|_| status.role == "remote")?;
    if let Some(Silence { kind, since }) = status.other_end.silence {
        let now = u64::try_from(machine.now_s).unwrap_or(0);
        return Some(Problem::GroundSilent { kind, for_s: now.saturating_sub(since) });
    }
    (!pair.up).then(|| Problem::GroundDown { why: status.other_end.handshake.clone() })
}

fn silence(kind: Silent) -> &'static str {
    match kind {
        Silent::Link => "nothing comes back over the link. Look at the modem, and whether the ground's machine runs",
        Silent::Program => {
            "its machine acknowledges, and Longhaul there does not. At the ground: systemctl restart longhaul"
        }
    }
}

fn packets(clients: &str, fault: &HostFault) -> String {
    match fault {
        HostFault::Gone { cure } => {
            format!("the packet rules for {clients} are gone, and clients pass this box by: {cure}")
        }
        HostFault::Dropped { packets, ports, by, cure } => format!(
            "the last {packets} packets of clients behind {clients} to port {ports} did not arrive: {} drops them. Let them in: {cure}",
            firewall(by.as_deref())
        ),
        HostFault::Redirected { ports, by, cure } => format!(
            "the chain `{by}` takes packets of clients behind {clients} to port {ports} before the rules of Longhaul: {cure}"
        ),
    }
}

fn firewall(by: Option<&str>) -> String {
    by.map_or_else(|| "another firewall".to_owned(), |by| format!("the chain `{by}`"))
}

fn size(of: Option<u64>) -> String {
    of.map_or_else(|| "off".to_owned(), |bytes| format!("only {}", Bytes(bytes)))
}

fn cache_disk(status: &Status, machine: &Machine) -> Option<Problem> {
    let (cache, free) = (status.cache.as_ref()?, machine.cache_free?);
    let held = Bytes(status.traffic.as_ref()?.cache.as_ref().map_or(0, |cache| cache.bytes));
    let size = Bytes(cache.size_bytes);
    let fits = free.0.saturating_add(held.0) >= size.0;
    (!fits).then(|| Problem::CacheDisk { dir: cache.dir.clone(), free, held, size })
}

/// Returns the warnings of `status`.
pub(super) fn warnings(status: &Status, machine: &Machine) -> Vec<Warning> {
    let refused = status.config.refused.as_ref().is_some_and(|refused| refused.standing);
    let mut found: Vec<Warning> = Vec::new();
    found.extend((!refused && !status.config.is_the_file).then_some(Warning::ChangePending));
    found.extend(status.is_hidden.then_some(Warning::Hidden));
    found.extend(status.open_files.filter(|files| files.are_many()).map(Warning::ManyFiles));
    found.extend(status.link_measured.misfit.clone().map(Warning::LinkMisfit));
    if status.parents.iter().any(|parent| parent.up) {
        let down = status.parents.iter().filter(|parent| !parent.up);
        found.extend(down.map(|parent| Warning::ParentDown { address: parent.address.clone() }));
    }
    let fault = status.compared.as_ref().and_then(|compared| compared.fault.clone());
    found.extend(fault.map(Warning::NothingCompared));
    let elsewhere = machine.missing_addresses.iter().filter(|address| status.is_unreachable(**address).is_none());
    found.extend(elsewhere.map(|address| Warning::AddressElsewhere { address: *address }));
    found.extend(status.certificates.iter().filter_map(|certificate| {
        let Lifetime::Soon { days } = certificate.validity.judge(machine.now_s) else { return None };
        Some(Warning::CertificateEndsSoon { of: certificate.of.clone(), file: certificate.file.clone(), days })
    }));
    found
}

fn cause(last_end: Option<&str>) -> String {
    last_end.map(|how| format!("; it {how}")).unwrap_or_default()
}

fn unsteered(proxies: &[String]) -> String {
    if proxies.is_empty() {
        ": the log of CoreDNS names the reason".to_owned()
    } else {
        format!(", because the proxy does not respond at {}", proxies.join(", "))
    }
}

fn lifetime(left: Lifetime) -> String {
    match left {
        Lifetime::NotYet => "is not valid yet".to_owned(),
        Lifetime::Expired => "has expired".to_owned(),
        Lifetime::Soon { days } | Lifetime::Ending { days } => format!("ends in {days} days"),
        Lifetime::Good => "is valid".to_owned(),
    }
}

/// A certificate of tomorrow means a clock of yesterday more often than a wrong certificate.
fn cure(left: Lifetime, file: &Path) -> String {
    match left {
        Lifetime::NotYet => format!("set the clock of this machine, or renew {}", file.display()),
        _ => format!("renew {}", file.display()),
    }
}

/// Writes items as a list of their words.
pub(super) fn in_words<T: fmt::Display, S: Serializer>(items: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(items.iter().map(ToString::to_string))
}
