//! Packet rules: what of the clients' traffic comes to us, and who may reach our listeners.

use std::fmt::Write as _;
use std::net::SocketAddr;

use crate::config::{Intercept, Remote, Role, Settings, Udp443};
use crate::derive::offers_http3;

/// The table all our rules are in; removing it removes them.
pub(super) const TABLE: &str = "inet longhaul";
/// Marks packets that TPROXY has given to a listener, so that routing keeps them here.
pub(super) const MARK: u32 = 0x10_4a;

/// The rule set for clients behind `interface`. Loading it again replaces it.
pub(super) fn rules(settings: &Settings, interface: &str) -> String {
    let listen = &settings.listen;
    let mut out = format!("table {TABLE}\ndelete table {TABLE}\n\ntable {TABLE} {{\n");
    let mut chain = |text: String| {
        let _ = writeln!(out, "{text}");
    };
    let web: Vec<(u16, SocketAddr)> = [(80, listen.http), (443, listen.tls)]
        .into_iter()
        .filter_map(|(port, socket)| socket.map(|socket| (port, socket)))
        .collect();
    let dns: Vec<(u16, SocketAddr)> = listen.dns.map(|socket| (53, socket)).into_iter().collect();
    match listen.intercept {
        Intercept::None => {}
        Intercept::Redirect => chain(intercept(interface, "nat", "dstnat", &redirects(&[web, dns].concat()))),
        Intercept::Tproxy => {
            chain(intercept(interface, "filter", "mangle", &tproxies(&web)));
            // CoreDNS's sockets are not transparent: names are asked for by redirection in any case.
            if !dns.is_empty() {
                chain(
                    intercept(interface, "nat", "dstnat", &redirects(&dns)).replace("chain intercept", "chain names"),
                );
            }
        }
    }
    if let Role::Remote(Remote { udp443: Udp443::Refuse, .. }) = settings.role {
        chain(refuse_quic(interface));
    }
    chain(guard(settings, interface));
    out.push_str("}\n");
    out
}

/// A chain on what clients send to others than this host.
fn intercept(interface: &str, kind: &str, priority: &str, rules: &str) -> String {
    format!(
        "\tchain intercept {{\n\
         \t\ttype {kind} hook prerouting priority {priority}; policy accept;\n\n\
         \t\tiifname != \"{interface}\" accept\n\
         \t\tmeta nfproto != ipv4 accept\n\
         \t\t# what is meant for this host is here already\n\
         \t\tfib daddr type local accept\n\
         {rules}\t}}\n"
    )
}

/// The first rule leaves alone what is under way: clients who come in from another region, or were here before the rules,
/// keep the connections they have. Sent to a listener that does not know them, they would be reset. (The same as
/// `net.netfilter.nf_conntrack_tcp_loose=0`, without a setting that concerns all of the host's traffic.)
fn redirects(ports: &[(u16, SocketAddr)]) -> String {
    const UNDER_WAY: &str = "\t\t# a connection that began elsewhere ends where it began\n\
                             \t\ttcp flags & (fin | syn | rst | ack) != syn accept\n";
    let rule = |(port, socket): &(u16, SocketAddr)| {
        let to = socket.port();
        let udp = if *port == 53 { format!("\t\tudp dport {port} redirect to :{to}\n") } else { String::new() };
        format!("\t\ttcp dport {port} redirect to :{to}\n{udp}")
    };
    std::iter::once(UNDER_WAY.to_owned()).chain(ports.iter().map(rule)).collect()
}

fn tproxies(ports: &[(u16, SocketAddr)]) -> String {
    let established = format!("\t\tmeta l4proto tcp socket transparent 1 meta mark set {MARK:#x} accept\n");
    let rule = |(port, socket): &(u16, SocketAddr)| {
        format!("\t\ttcp dport {port} tproxy ip to :{} meta mark set {MARK:#x} accept\n", socket.port())
    };
    std::iter::once(established).chain(ports.iter().map(rule)).collect()
}

/// QUIC would cross the link past the pair, handshakes and all. Told so at once, browsers use TCP; dropped packets they
/// would send again for seconds.
fn refuse_quic(interface: &str) -> String {
    format!(
        "\tchain quic {{\n\
         \t\ttype filter hook forward priority filter; policy accept;\n\n\
         \t\tiifname \"{interface}\" udp dport 443 reject\n\
         \t}}\n"
    )
}

/// Our listeners are for our clients: to anybody else they would be a proxy and a resolver to abuse. Refused at once, so
/// that a client that was steered here for another port falls through to the origin's address behind ours.
fn guard(settings: &Settings, interface: &str) -> String {
    let listen = &settings.listen;
    let tcp: Vec<String> =
        [listen.http, listen.tls, listen.dns].into_iter().flatten().map(|socket| socket.port().to_string()).collect();
    let quic = listen.tls.filter(|_| offers_http3(settings));
    let udp: Vec<String> = [listen.dns, quic].into_iter().flatten().map(|socket| socket.port().to_string()).collect();
    let udp = if udp.is_empty() { String::new() } else { format!("\t\tudp dport {{ {} }} reject\n", udp.join(", ")) };
    format!(
        "\tchain listeners {{\n\
         \t\ttype filter hook input priority filter; policy accept;\n\n\
         \t\t# from anywhere else this host is neither a proxy nor a resolver\n\
         \t\tiifname {{ \"{interface}\", \"lo\" }} accept\n\
         \t\ttcp dport {{ {} }} reject with tcp reset\n\
         {udp}\t}}",
        tcp.join(", ")
    )
}
