//! The packet rules: they lead clients' traffic to the listeners, and keep everybody else away from them.

use std::fmt::Write as _;
use std::net::SocketAddr;

use longhaul_config::{Intercept, Remote, Role, Settings, Sockets, Udp443};

use super::comparison;
use super::instant;
use super::listener::Listener;
use super::machine::Machine;
use super::other_ports::{self, OtherPortRules};

/// The table that holds all rules of Longhaul. Deleting it removes them.
pub const TABLE: &str = "inet longhaul";
/// The mark of packets that TPROXY has given to a listener. Policy routing keeps marked packets on this host.
pub(super) const MARK: u32 = 0x10_4a;
/// The mark of packets that pass untouched. Rules of other programs set it, before [`TABLE`] sees the packet.
const PASSES: u32 = 0x10_4b;

/// The order of the chain that counts arrivals: behind the chains of every firewall.
const LAST: i32 = 1000;

/// Ports of other hosts whose packets are led to a listener. Two counters of the table tell whether they arrive:
/// `to_NAME` counts those that are led there, and `at_NAME` those that got past every other firewall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// The name of the counters: the port, or `tcp` for the ports of `listen.tcp`.
    pub name: String,
    /// The ports of other hosts, at least one. Of `listen.tcp: all` these are some that clients use.
    pub from: Vec<u16>,
    /// The port of the listener.
    pub to: u16,
    /// True if UDP is led there, too.
    pub udp: bool,
}

impl Counted {
    /// Returns the ports whose packets are counted.
    #[must_use]
    pub fn of(settings: &Settings) -> Vec<Self> {
        let listen = &settings.listen;
        let of = |from: u16, sockets: &Option<Sockets>| {
            let to = sockets.as_ref()?.port();
            Some(Self { name: from.to_string(), from: vec![from], to, udp: from == 53 })
        };
        if listen.intercept == Intercept::None {
            return Vec::new();
        }
        let others = listen.tcp.as_ref().map(|tcp| Self {
            name: other_ports::COUNTER.to_owned(),
            from: other_ports::some(&tcp.dialled),
            to: tcp.sockets.port(),
            udp: false,
        });
        let web = [of(80, &Some(listen.http.clone())), of(443, &listen.tls), of(53, &listen.dns)];
        web.into_iter().chain([others]).flatten().collect()
    }
}

/// Returns the rule set for the clients of `machine`. Loading it again replaces it.
pub(super) fn rules(settings: &Settings, machine: &Machine) -> String {
    let listen = &settings.listen;
    let clients = machine.clients_in_nft();
    let clients = clients.as_str();
    let mut out = format!("table {TABLE}\ndelete table {TABLE}\n\ntable {TABLE} {{\n");
    let counted = Counted::of(settings);
    out.push_str(&counters(&counted));
    let mut chain = |text: String| {
        let _ = writeln!(out, "{text}");
    };
    let web = [80, 443].into_iter().zip(listen.web()).map(|(port, sockets)| Listener::new(port, sockets));
    let web: Vec<Listener> = web.collect();
    let dns: Vec<Listener> = listen.dns.iter().map(|sockets| Listener::new(53, sockets)).collect();
    // No packet of a client passes without interception, and `check` refuses `compare` there.
    let share = settings.compare.filter(|_| listen.intercept != Intercept::None);
    let others = listen.tcp.as_ref().map(OtherPortRules::new);
    let pass = share.map(|share| comparison::pass(share, &web, others.as_ref())).unwrap_or_default();
    let led = |way: &dyn Fn(&OtherPortRules) -> String| others.as_ref().map(way).unwrap_or_default();
    match listen.intercept {
        Intercept::None => {}
        Intercept::Redirect => {
            let listeners = [&web[..], &dns[..]].concat();
            chain(intercept(
                clients,
                "nat",
                "dstnat",
                &own(&listeners),
                &(pass + &redirects(&listeners) + &led(&OtherPortRules::redirects)),
            ));
        }
        Intercept::Tproxy => {
            chain(intercept(
                clients,
                "filter",
                "mangle",
                "",
                &(tproxies(&web, &pass) + &led(&|rules| rules.tproxies(MARK))),
            ));
            // CoreDNS's sockets are not transparent, so DNS is always redirected.
            if !dns.is_empty() {
                chain(
                    intercept(clients, "nat", "dstnat", &own(&dns), &redirects(&dns))
                        .replace("chain intercept", "chain names"),
                );
            }
        }
    }
    if let Role::Remote(Remote { udp443: Udp443::Refuse, .. }) = settings.role {
        chain(refuse_quic(clients, &share.map(comparison::pass_quic).unwrap_or_default()));
    }
    let instant = instant::rules(settings, clients, MARK);
    if !instant.is_empty() {
        chain(instant);
    }
    if let Some(share) = share {
        chain(comparison::copies(share, clients, &web));
    }
    if let Some(socket) = settings.acme.as_ref().and_then(|acme| acme.listen) {
        chain(challenges(&machine.clients_and(&["lo"]), socket));
    }
    chain(guard(settings, &machine.clients_and(&["lo"])));
    if !counted.is_empty() {
        chain(arrived(clients, &counted, listen.intercept));
    }
    out.push_str("}\n");
    out
}

fn counters(counted: &[Counted]) -> String {
    let pair = |one: &Counted| format!("\tcounter to_{0} {{ }}\n\tcounter at_{0} {{ }}\n", one.name);
    counted.iter().map(pair).collect()
}

/// Returns the chain that counts what arrives at the listeners. It decides nothing. A packet under TPROXY has the port of
/// the other host there.
fn arrived(clients: &str, counted: &[Counted], intercept: Intercept) -> String {
    let rule = |one: &Counted| {
        let ports = match (one.name == other_ports::COUNTER, intercept) {
            // This machine may have an ssh server of its own.
            (true, Intercept::Tproxy) => format!("{} fib daddr type != local", other_ports::set(&one.from)),
            (false, _) if !one.from.contains(&one.to) => other_ports::set(&[&one.from[..], &[one.to]].concat()),
            (true, Intercept::Redirect | Intercept::None) | (false, _) => one.to.to_string(),
        };
        let of = |protocol| format!("\t\tct state new {protocol} dport {ports} counter name at_{}\n", one.name);
        of("tcp") + &if one.udp { of("udp") } else { String::new() }
    };
    format!(
        "\tchain arrived {{\n\
         \t\ttype filter hook input priority {LAST}; policy accept;\n\n\
         \t\tiifname != {clients} accept\n\
         {}\t}}",
        counted.iter().map(rule).collect::<String>()
    )
}

/// Returns the rules that count packets to listeners at addresses of this host.
fn own(listeners: &[Listener]) -> String {
    let rule = |listener: &Listener| {
        let Listener { from, to, .. } = *listener;
        let count = |protocol| format!("\t\tfib daddr type local {protocol} dport {to} counter name to_{from}\n");
        let udp = if from == 53 { count("udp") } else { String::new() };
        count("tcp") + &udp
    };
    listeners.iter().map(rule).collect()
}

/// Returns a chain for the packets that clients send to other hosts. `own` are rules for those to this host.
fn intercept(clients: &str, kind: &str, priority: &str, own: &str, rules: &str) -> String {
    format!(
        "\tchain intercept {{\n\
         \t\ttype {kind} hook prerouting priority {priority}; policy accept;\n\n\
         \t\tiifname != {clients} accept\n\
         {own}\
         \t\t# another program's rules keep these away, such as a captive portal's\n\
         \t\tmeta mark {PASSES:#x} accept\n\
         \t\t# what is meant for this host is here already\n\
         \t\tfib daddr type local accept\n\
         {rules}\t}}\n"
    )
}

/// Returns the rules that redirect new connections to the listeners.
///
/// The first rule leaves existing connections alone: those of clients that arrive from another region, or that were
/// here before the rules. A listener does not know them and would reset them. `net.netfilter.nf_conntrack_tcp_loose=0`
/// would do the same, but it affects all traffic of the host.
fn redirects(listeners: &[Listener]) -> String {
    const UNDER_WAY: &str = "\t\t# a connection that began elsewhere ends where it began\n\
                             \t\ttcp flags & (fin | syn | rst | ack) != syn accept\n";
    let rule = |listener: &Listener| {
        let (family, Listener { from, to, .. }) = (listener.family(), *listener);
        let redirect =
            |protocol| format!("\t\t{family}{protocol} dport {from} counter name to_{from} redirect to :{to}\n");
        let udp = if from == 53 { redirect("udp") } else { String::new() };
        redirect("tcp") + &udp
    };
    std::iter::once(UNDER_WAY.to_owned()).chain(listeners.iter().map(rule)).collect()
}

/// Returns the rules that give packets to the listeners. Connections that have begun there stay there, whatever `pass`
/// lets through. A listener for any address has no connection of its own (`wildcard`), but is transparent as well.
fn tproxies(listeners: &[Listener], pass: &str) -> String {
    let keep =
        |wildcard| format!("\t\tmeta l4proto tcp socket transparent 1 {wildcard}meta mark set {MARK:#x} accept\n");
    let begun = if pass.is_empty() { String::new() } else { keep("socket wildcard 0 ") };
    let rules = |listener: &Listener| {
        let Listener { from, to, .. } = *listener;
        let rule = |family| {
            format!(
                "\t\ttcp dport {from} counter name to_{from} tproxy {family} to :{to} meta mark set {MARK:#x} accept\n"
            )
        };
        listener.families().map(rule).collect::<String>()
    };
    [begun, pass.to_owned(), keep("")].into_iter().chain(listeners.iter().map(rules)).collect()
}

/// Returns the chain that rejects QUIC. Otherwise QUIC would cross the link outside the pair, with all its handshakes.
/// Browsers use TCP at once after a rejection, but retransmit dropped packets for seconds.
fn refuse_quic(clients: &str, pass: &str) -> String {
    format!(
        "\tchain quic {{\n\
         \t\ttype filter hook forward priority filter; policy accept;\n\n\
         \t\tmeta mark {PASSES:#x} accept\n\
         {pass}\t\tiifname {clients} udp dport 443 reject\n\
         \t}}\n"
    )
}

/// Returns the chain that leads ACME servers to the listener for challenges (`tls.acme.listen`). They come from the
/// Internet, from which the listeners of clients are closed.
///
/// The other listener makes it safe: it has no way to any host but the one with the responses. So nobody becomes a
/// client by a request to port 80.
fn challenges(inside: &str, socket: SocketAddr) -> String {
    let family = if socket.is_ipv4() { "ipv4" } else { "ipv6" };
    format!(
        "\tchain challenges {{\n\
         \t\ttype nat hook prerouting priority dstnat; policy accept;\n\n\
         \t\tiifname {inside} accept\n\
         \t\t# only ACME challenges are answered there\n\
         \t\tmeta nfproto {family} fib daddr type local tcp dport 80 redirect to :{}\n\
         \t}}\n",
        socket.port()
    )
}

/// Returns the chain that rejects packets to the listeners from other interfaces than the clients'. For anybody else
/// the listeners would be an open proxy and an open resolver.
///
/// The chain rejects and does not drop. A steered client then tries the origin's address at once, which follows the
/// proxy's in the DNS response.
fn guard(settings: &Settings, inside: &str) -> String {
    let listen = &settings.listen;
    let port = |sockets: &Sockets| sockets.port().to_string();
    let lookups = settings.encrypted_lookups().map(|lookups| lookups.transports).unwrap_or_default();
    let encrypted = |udp| lookups.iter().filter(move |one| one.is_udp() == udp).map(|one| one.port().to_string());
    let others = listen.tcp.iter().map(|tcp| &tcp.sockets);
    let tcp: Vec<String> = listen.web().chain(&listen.dns).chain(others).map(port).chain(encrypted(false)).collect();
    let quic = listen.tls.as_ref().filter(|_| settings.offers_http3());
    let udp: Vec<String> = listen.dns.iter().chain(quic).map(port).chain(encrypted(true)).collect();
    let udp = if udp.is_empty() { String::new() } else { format!("\t\tudp dport {{ {} }} reject\n", udp.join(", ")) };
    let known = if settings.proxy.siblings.is_empty() {
        ""
    } else {
        "\t\t# a connection that began here: its client moved to a sibling\n\
         \t\tmeta l4proto tcp ct state established ct direction original accept\n"
    };
    format!(
        "\tchain listeners {{\n\
         \t\ttype filter hook input priority filter; policy accept;\n\n\
         \t\t# from anywhere else this host is neither a proxy nor a resolver\n\
         \t\tiifname {inside} accept\n\
         {known}\
         \t\ttcp dport {{ {} }} reject with tcp reset\n\
         {udp}\t}}",
        tcp.join(", ")
    )
}
