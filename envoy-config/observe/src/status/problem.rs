//! The problems and warnings of a running box: every condition, and its words in the text, the JSON and on the page.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use longhaul_config::{AccessLog, Bytes, Lifetime};
use serde::Serializer;

use super::{Child, Status};
use crate::OpenFiles;
use crate::measure::{Misfit, Silent};
use crate::report::{CacheFault, HostFault, ProblemKind, ProblemRecord, Silence};

/// The size of packets that crosses every link: the least that IPv6 allows (RFC 8200 section 5).
const MTU: u32 = 1280;
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
        /// Envoy, CoreDNS, longhaul-images or longhaul-objects.
        name: &'static str,
        /// The cause of its last death.
        last_end: Option<String>,
    },
    /// A refused change.
    #[error("the present files were refused, and an earlier configuration is in force: {}", refusal(why))]
    ChangeRefused {
        /// The reason as the journal has it.
        why: String,
    },
    /// The pair is cut.
    #[error("the ground does not respond: {}", why.as_deref().unwrap_or("clients of this remote have no connection over the link"))]
    GroundDown {
        /// The reason why the last handshake failed, with its cure.
        why: Option<String>,
    },
    /// The link or the ground is silent.
    #[error("the ground has not responded for {for_s} s: {}", silence(*kind, *port))]
    GroundSilent {
        /// The part that is silent.
        kind: Silent,
        /// The time of the silence, in seconds.
        for_s: u64,
        /// The ground's TCP port.
        port: u16,
    },
    /// A problem of the ground, in its own words.
    #[error("the ground reports: {}", .0.text)]
    GroundReports(ProblemRecord),
    /// Large packets vanish on the way to the other end.
    #[error(
        "packets of {bytes} bytes vanish between the ends of this pair, and objects hang: write {}. `longhaul netcheck` measures the size",
        smaller(*has_links)
    )]
    LargePackets {
        /// The size of the IP packets.
        bytes: u32,
        /// True at a remote with several links.
        has_links: bool,
    },
    /// A resolver asks this box.
    #[error(
        "the resolver {address} (`upstream.resolvers`) asks this box again, in a loop: name one in `upstream.resolvers` that asks neither end"
    )]
    DnsLoop {
        /// The resolver.
        address: SocketAddr,
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
    #[error("the cache is {}: {}. When its disk has room and takes writes, it is complete again within 30 s", size(.0.size_bytes), .0.why)]
    CacheCut(CacheFault),
    /// The kernel has made the cache's disk read-only, as after an error of the disk.
    #[error("the disk of {} is read-only, and nothing is cached anew: mend it, and then: systemctl restart longhaul", dir.display())]
    CacheReadOnly {
        /// `cache.dir`
        dir: PathBuf,
    },
    /// The cache cannot grow to its size. Envoy aborts the responses that it caches on a full disk.
    #[error(
        "the disk of {} has {free} left and the cache holds {held}, but `cache.size` is {size}: on a full disk, nothing more is cached",
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
            Self::ChangeRefused { .. } => (ProblemKind::ChangeRefused, String::new()),
            Self::GroundDown { .. } => (ProblemKind::GroundDown, String::new()),
            Self::GroundSilent { kind: Silent::Link, .. } => (ProblemKind::LinkSilent, String::new()),
            Self::GroundSilent { kind: Silent::Program, .. } => (ProblemKind::GroundSilent, String::new()),
            Self::GroundSilent { kind: Silent::ReversePath, .. } => (ProblemKind::ReversePath, String::new()),
            Self::GroundReports(problem) => {
                (ProblemKind::GroundReports, format!("{} {}", problem.kind.label(), problem.of).trim().to_owned())
            }
            Self::LargePackets { .. } => (ProblemKind::LargePackets, String::new()),
            Self::DnsLoop { address } => (ProblemKind::DnsLoop, address.to_string()),
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
            Self::Packets { clients, fault: HostFault::NotForwarding { .. } } => {
                (ProblemKind::NotForwarding, clients.clone())
            }
            Self::Packets { clients, fault: HostFault::Ipv6Passes { .. } | HostFault::Unshaped { .. } } => {
                (ProblemKind::Other, clients.clone())
            }
            Self::CacheDisk { .. } | Self::CacheReadOnly { .. } => (ProblemKind::CacheDisk, String::new()),
            Self::AccessLog { .. } => (ProblemKind::AccessLog, String::new()),
            Self::AccessLogDisk { .. } => (ProblemKind::AccessLogDisk, String::new()),
            Self::StateElsewhere(_) => (ProblemKind::StateElsewhere, String::new()),
            Self::CacheCut(_) => (ProblemKind::CacheCut, String::new()),
        }
    }

    /// Returns its words without figures that change while it stands.
    pub(super) fn lasting_words(&self) -> String {
        match self {
            Self::GroundSilent { kind, port, .. } => {
                format!("the ground does not respond: {}", silence(*kind, *port))
            }
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
        "Envoy has {} of {} files open; at the limit, clients get errors. Raise it (systemd: LimitNOFILE={}), or lower `limits.connections`",
        .0.open, .0.limit, .0.limit.saturating_mul(2)
    )]
    ManyFiles(OpenFiles),
    /// Another user of the machine, and no metrics page.
    #[error("this user may not read the counters: run `longhaul status` as root or as the user of the run")]
    Hidden,
    /// The groups of `compare` are not measured.
    #[error("`compare` measures nothing: {0}")]
    NothingCompared(String),
    /// IPv6 of clients passes this box by.
    #[error("clients behind {clients} have IPv6, which passes this box by: {cure}")]
    Ipv6Passes {
        /// The interface to the clients.
        clients: String,
        /// The change of the file.
        cure: String,
    },
    /// Traffic that bypasses Longhaul has no limit and no shares.
    #[error("{why}, so what bypasses Longhaul fills the queue of the modem: {cure}")]
    Unshaped {
        /// The device of the link, and the reason.
        why: String,
        /// The command that makes a queue.
        cure: String,
    },
    /// One of several links does not work, and another does.
    #[error("the link {name} ({device}) is down for {}: look at its modem. {standing} carries everything meanwhile", super::time(*.for_s))]
    LinkDown {
        /// Its name.
        name: String,
        /// Its interface.
        device: String,
        /// The time since then, in seconds.
        for_s: u64,
        /// A link that works.
        standing: String,
    },
    /// Connections do not outlive one of several links.
    #[error("the link {name} ({device}): {fault}")]
    LinkHindered {
        /// Its name.
        name: String,
        /// Its interface.
        device: String,
        /// The fault, in words.
        fault: String,
    },
    /// Names of some clients pass this box by.
    #[error(
        "a client uses encrypted DNS (DNS over https or TLS) of a public resolver, past this box: each of its names waits for the link. `dns.canary`, on by default, asks browsers not to. Where somebody chose that resolver, change it in the browser or the system"
    )]
    EncryptedDns,
    /// The clocks of both ends differ.
    #[error(
        "the clock of this machine is {} the ground's. Set the clock of the end that is wrong: timedatectl set-ntp true",
        apart(*.0)
    )]
    Clock(i64),
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
    /// True if the cache's disk is mounted read-only.
    pub(super) cache_is_read_only: bool,
}

/// Returns the problems of `status`, in the order in which an operator should look at them.
pub(super) fn problems(status: &Status, machine: &Machine) -> Vec<Problem> {
    // The listeners close and the processes end, as they should.
    if status.draining {
        let lasting = [status.state_fault.clone().map(Problem::StateElsewhere), cache_disk(status, machine)];
        return std::iter::once(Problem::Draining).chain(lasting.into_iter().flatten()).collect();
    }
    let down = |name, child: &Child| (!child.up).then(|| Problem::ChildDown { name, last_end: child.last_end.clone() });
    let refused = status.config.refused.as_ref().is_some_and(|refused| refused.standing);
    let mut found: Vec<Problem> = Vec::new();
    found.extend(down("Envoy", &status.envoy));
    found.extend(down("CoreDNS", &status.coredns));
    found.extend(status.images.as_ref().and_then(|images| down("longhaul-images", images)));
    found.extend(status.objects.as_ref().and_then(|objects| down("longhaul-objects", objects)));
    let why = || status.config.refused.as_ref().map(|refused| refused.why.clone()).unwrap_or_default();
    found.extend(refused.then(|| Problem::ChangeRefused { why: why() }));
    found.extend(ground(status, machine));
    let has_links = !status.links.is_empty();
    found.extend(status.other_end.vanishing.map(|bytes| Problem::LargePackets { bytes, has_links }));
    let is_silent = status.other_end.silence.is_some();
    let told = status.other_end.ground.problems.iter().filter(|_| status.role == "remote" && !is_silent);
    found.extend(told.cloned().map(Problem::GroundReports));
    let no_parent = !status.parents.is_empty() && status.parents.iter().all(|parent| !parent.up);
    found.extend(no_parent.then_some(Problem::ParentsDown));
    let loops = status.resolvers.iter().filter(|resolver| resolver.loops);
    found.extend(loops.map(|resolver| Problem::DnsLoop { address: resolver.address }));
    let resolvers = status.resolvers.iter().filter(|resolver| !resolver.up && !resolver.loops);
    found.extend(resolvers.map(|resolver| Problem::ResolverDown { address: resolver.address }));
    // Silent resolvers explain failed queries.
    let silent = found.iter().any(|problem| {
        matches!(
            problem,
            Problem::ResolverDown { .. }
                | Problem::DnsLoop { .. }
                | Problem::GroundDown { .. }
                | Problem::GroundSilent { .. }
                | Problem::GroundReports(_)
        )
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
    let of_host = machine.host_faults.iter().filter(|(_, fault)| fault.hinders_clients()).cloned();
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
    let reason = status.other_end.handshake.clone();
    let silence = status.other_end.silence.filter(|silence| silence.kind != Silent::Program || reason.is_none());
    if let Some(Silence { kind, since, port }) = silence {
        let now = u64::try_from(machine.now_s).unwrap_or(0);
        return Some(Problem::GroundSilent { kind, for_s: now.saturating_sub(since), port });
    }
    (!pair.up || reason.is_some()).then_some(Problem::GroundDown { why: reason })
}

fn silence(kind: Silent, port: u16) -> String {
    match kind {
        Silent::Link => format!(
            "nothing comes back over the link. Look at the modem, and whether the ground's machine runs and lets in TCP {port}"
        ),
        Silent::ReversePath => {
            "this kernel drops what comes in over another interface than it sends by (rp_filter): sysctl -w net.ipv4.conf.all.rp_filter=2".to_owned()
        }
        Silent::Program => {
            "its machine acknowledges, and Longhaul there does not. At the ground: systemctl restart longhaul".to_owned()
        }
    }
}

/// Returns what bounds the packets between the ends. An item of `links` bounds them in both directions.
fn smaller(has_links: bool) -> String {
    if has_links {
        format!("`mtu: {MTU}` in the item of `links`")
    } else {
        format!("`link: {{ mtu: {MTU} }}` at both ends")
    }
}

fn packets(clients: &str, fault: &HostFault) -> String {
    match fault {
        HostFault::NotForwarding { cure } => format!(
            "this machine does not forward packets of clients behind {clients} (ip_forward): what has no listener, such as ssh and mail, is lost: {cure}"
        ),
        HostFault::Ipv6Passes { cure } => format!("IPv6 of clients behind {clients} passes this box by: {cure}"),
        HostFault::Unshaped { why, cure } => format!("{why}: {cure}"),
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
    let cache = status.cache.as_ref()?;
    if machine.cache_is_read_only {
        return Some(Problem::CacheReadOnly { dir: cache.dir.clone() });
    }
    let free = machine.cache_free?;
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
    found.extend(status.other_end.ground.clock_ahead_s.map(Warning::Clock));
    found.extend(status.asks_others.then_some(Warning::EncryptedDns));
    found.extend(machine.host_faults.iter().filter_map(|(clients, fault)| match fault {
        HostFault::Ipv6Passes { cure } => Some(Warning::Ipv6Passes { clients: clients.clone(), cure: cure.clone() }),
        HostFault::Unshaped { why, cure } => Some(Warning::Unshaped { why: why.clone(), cure: cure.clone() }),
        _ => None,
    }));
    if let Some(standing) = status.links.iter().find(|link| link.alive) {
        found.extend(status.links.iter().filter(|link| !link.alive).map(|link| Warning::LinkDown {
            name: link.name.clone(),
            device: link.device.clone(),
            for_s: status.at.saturating_sub(link.changed_at),
            standing: standing.name.clone(),
        }));
    }
    found.extend(status.links.iter().filter_map(|link| {
        let fault = link.hindered.clone()?;
        Some(Warning::LinkHindered { name: link.name.clone(), device: link.device.clone(), fault })
    }));
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

/// Returns a refusal in one line: its message, what was found, and the help.
fn refusal(why: &str) -> String {
    let mut lines = why.lines();
    let first = lines.next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first).trim();
    let rest: Vec<&str> = lines.collect();
    let marked = rest.iter().find_map(|line| line.split_once('^')).map(|(_, found)| found.trim_matches(['^', ' ']));
    let help = rest.iter().find_map(|line| line.trim_start().strip_prefix("= help: "));
    let parts = [Some(first), marked.filter(|found| !found.is_empty()), help, Some("`longhaul check` shows the place")];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
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

/// Returns a difference of clocks in words, from the number of seconds by which the other one is ahead.
fn apart(ahead_s: i64) -> String {
    let way = if ahead_s > 0 { "behind" } else { "ahead of" };
    format!("{} {way}", super::time(ahead_s.unsigned_abs()))
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
