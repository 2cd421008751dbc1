//! `longhaul netcheck`: what between this box and others keeps Longhaul from its work, and what to type.
//!
//! | module | job |
//! |---|---|
//! | `table` | every check, with its question |
//! | `finding` | a line of the result |
//! | `gather` | reads this machine, and waits for others |
//! | `firewall` | follows a packet through foreign rules |
//! | `judge` | turns facts into lines |
//!
//! Facts that need time are gathered at once. A check without a fact after [`LONGEST`] has no result.

mod finding;
mod firewall;
mod gather;
mod judge;
mod table;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use finding::{Finding, Verdict};
use firewall::Port;
use judge::host::Own;
use judge::names::QuicServer;
use longhaul_config::{HostName, Intercept, Loaded, PipeTransport, Remote, Role, Settings, Sockets, Udp443};
use longhaul_derive::{HostFacts, derive};
pub(crate) use table::Check;
use table::TABLE;

use crate::pair::{self, Peer, Topic};
use crate::run::own_sockets;

/// The longest time for everything.
const LONGEST: Duration = Duration::from_secs(18);
/// The port of QUIC and https.
const HTTPS: u16 = 443;

/// The options, beside the file.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// A public name, for the resolvers, the clock and QUIC.
    pub name: HostName,
    /// The state folder of the run, if it was started with one.
    pub state: Option<PathBuf>,
}

/// The subject of every thread.
struct Subject {
    loaded: Loaded,
    options: Options,
}

impl Subject {
    fn settings(&self) -> &Settings {
        &self.loaded.settings
    }
}

/// Makes every check that is for a box with this file. Returns the lines in the order of the table.
pub(crate) fn check(loaded: Loaded, options: Options) -> Vec<Finding> {
    let subject = Arc::new(Subject { loaded, options });
    let (sender, findings) = mpsc::channel();
    for job in [host, names, handshake, way] {
        let (subject, sender) = (subject.clone(), sender.clone());
        thread::spawn(move || job(&subject, &sender));
    }
    drop(sender);
    let end = Instant::now() + LONGEST;
    let mut found: Vec<Finding> = Vec::new();
    while let Ok(more) = findings.recv_timeout(end.saturating_duration_since(Instant::now())) {
        found.extend(more);
    }
    in_order(&found, subject.settings())
}

/// Sorts by the table. A check without a finding did not end.
fn in_order(found: &[Finding], settings: &Settings) -> Vec<Finding> {
    let mut lines = Vec::new();
    for row in TABLE.iter().filter(|row| row.check.applies(settings)) {
        let before = lines.len();
        lines.extend(found.iter().filter(|finding| finding.check == row.check).cloned());
        if lines.len() == before {
            let text = format!("no result within {} s", LONGEST.as_secs());
            lines.push(Finding::skipped(row.check, text));
        }
    }
    lines
}

type Findings = Sender<Vec<Finding>>;

/// This machine: ports, packet filter, kernel settings.
fn host(subject: &Subject, findings: &Findings) {
    let settings = subject.settings();
    let sockets = own_sockets(subject.options.state.as_deref(), &subject.loaded);
    let _ = findings.send(judge::host::ports(&sockets));
    let facts = HostFacts::of_this_machine();
    let _ = findings.send(judge::host::congestion(&derive(settings, &facts).congestion_control, &facts));
    let rules = gather::host::rules();
    let _ = findings.send(judge::host::firewall(&rules, &of_others(settings), own_rules(settings)));
    if Check::Forwarding.applies(settings) {
        let forward = gather::host::sysctl("net.ipv4.ip_forward");
        let _ = findings.send(judge::host::forwarding(forward.as_deref(), &rules));
    }
}

fn own_rules(settings: &Settings) -> Own {
    match settings.role {
        _ if settings.listen.intercept == Intercept::None => Own::None,
        Role::Remote(_) => Own::Needed,
        Role::Edge => Own::Usual,
        Role::Ground(_) => Own::None,
    }
}

/// Returns the ports on which clients or remotes connect.
fn of_others(settings: &Settings) -> Vec<Port> {
    let listen = &settings.listen;
    let dns = listen.dns.as_ref().map(Sockets::port);
    let tcp = [Some(&listen.http), listen.tls.as_ref()].into_iter().flatten().map(Sockets::port).chain(dns);
    let quic = match &settings.role {
        Role::Ground(ground) if ground.transport == PipeTransport::H3 => Some(ground.listen.port()),
        _ => None,
    };
    let tcp = tcp.map(|number| Port { udp: false, number });
    tcp.chain(dns.into_iter().chain(quic).map(|number| Port { udp: true, number })).collect()
}

/// Resolvers, and what can be tried with the addresses of a public name.
fn names(subject: &Subject, findings: &Findings) {
    let settings = subject.settings();
    let name = subject.options.name.as_str();
    let facts = gather::names::resolvers(&resolvers_of(settings), name);
    let _ = findings.send(judge::names::resolvers(&facts, name));
    let addresses = facts.iter().flat_map(|fact| fact.ipv4.iter().chain(&fact.tcp)).flatten();
    let address: Option<IpAddr> = addresses.copied().next();
    thread::scope(|scope| {
        // A remote compares its clock with its ground's.
        if !matches!(settings.role, Role::Remote(_)) {
            scope.spawn(move || {
                let fact = address.ok_or_else(|| "it has no address".to_owned());
                let fact = fact.and_then(|address| gather::names::clock(address, name));
                let _ = findings.send(judge::names::clock(&fact, name));
            });
        }
        scope.spawn(move || findings.send(quic(settings, address, name)));
    });
}

/// Returns the resolvers of this box. A remote resolves names through its ground, by its own DNS.
fn resolvers_of(settings: &Settings) -> Vec<SocketAddr> {
    let own = settings.listen.dns.as_ref().map(Sockets::from_this_machine);
    let resolvers = &settings.upstream.resolvers;
    if matches!(settings.role, Role::Remote(_)) {
        own.into_iter().chain(resolvers.iter().copied()).collect()
    } else {
        resolvers.clone()
    }
}

/// QUIC of clients, which crosses the link beside Longhaul. That of the pipe is tried with the ground.
fn quic(settings: &Settings, address: Option<IpAddr>, name: &str) -> Vec<Finding> {
    let check = Check::Udp443;
    match (&settings.role, address) {
        (Role::Ground(_) | Role::Remote(Remote { transport: PipeTransport::H3, .. }), _) => Vec::new(),
        (Role::Remote(Remote { udp443: Udp443::Refuse, .. }), _) => {
            vec![Finding::skipped(check, "`split.udp443: refuse` keeps QUIC of clients from the link")]
        }
        (_, None) => vec![Finding::skipped(check, format!("not tried, because {name} has no address"))],
        (_, Some(address)) => {
            let socket = SocketAddr::new(address, HTTPS);
            judge::names::quic(&gather::names::quic(socket), &QuicServer::Public(socket, name.to_owned()))
        }
    }
}

/// The handshake with the other end of a pair, as `longhaul pair check` tries it.
fn handshake(subject: &Subject, findings: &Findings) {
    let settings = subject.settings();
    if settings.role.is_alone() {
        return;
    }
    let lines = match pair::check(settings, Some(patience(settings))) {
        Ok(lines) => lines,
        Err(error) => {
            let error = Finding::error(Check::Handshake, error.to_string(), "longhaul check FILE");
            let _ = findings.send(vec![error]);
            return;
        }
    };
    let _ = findings.send(judge::peer::lines(Check::Handshake, Topic::Handshake, &lines));
    if matches!(settings.role, Role::Remote(_)) {
        let clock = judge::peer::lines(Check::Clock, Topic::Clock, &lines);
        let unknown = || vec![Finding::skipped(Check::Clock, "no ground tells its time")];
        let _ = findings.send(if clock.is_empty() { unknown() } else { clock });
    }
}

/// The time for a step of a handshake: shorter than that of `longhaul pair check`, because all of it has to end in time.
fn patience(settings: &Settings) -> Duration {
    Duration::from_secs(3) + settings.slowest_link().rtt * 4
}

/// The way to the other end of a pair.
fn way(subject: &Subject, findings: &Findings) {
    let settings = subject.settings();
    let Role::Remote(remote) = &settings.role else { return };
    let unknown = |why: String| {
        let all = [Check::Rtt, Check::Mtu, Check::Rate].map(|check| Finding::skipped(check, why.clone()));
        let quic = (remote.transport == PipeTransport::H3).then(|| Finding::skipped(Check::Udp443, why));
        let _ = findings.send(all.into_iter().chain(quic).collect());
    };
    let peer = match Peer::find(settings, patience(settings)) {
        Ok(peer) => Arc::new(peer),
        Err(why) => return unknown(why),
    };
    if remote.transport == PipeTransport::H3 {
        let fact = gather::names::quic(peer.address());
        let _ = findings.send(judge::names::quic(&fact, &QuicServer::Ground(peer.address())));
    }
    // First the delays, then the rate, which would add to them.
    let link = &settings.link;
    match gather::path::path(&peer, link) {
        Ok(path) => drop(findings.send([judge::peer::rtt(&path, link), judge::peer::mtu(&path, link)].concat())),
        Err(error) => return unknown(error.to_string()),
    }
    let _ = findings.send(match judge::peer::rate_costs(link) {
        Some(finding) => vec![finding],
        None => judge::peer::rate(&gather::rate::rate(&peer, link.up), link),
    });
}
