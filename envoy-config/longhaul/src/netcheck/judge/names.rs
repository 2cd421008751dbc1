//! Resolvers, the clock, and QUIC.

use std::net::SocketAddr;

use super::super::finding::Finding;
use super::super::gather::names::{ClockFact, QuicFact, ResolverFact};
use super::super::table::Check;

/// A difference of clocks above this is an error: 2 minutes, as for `longhaul pair check`.
const MOST_APART_MS: i64 = 120_000;

/// Judges the resolvers, a line each.
pub(crate) fn resolvers(facts: &[ResolverFact], name: &str) -> Vec<Finding> {
    facts.iter().map(|fact| resolver(fact, name)).collect()
}

fn resolver(fact: &ResolverFact, name: &str) -> Finding {
    let check = Check::Resolver;
    let resolver = fact.resolver;
    let (address, port) = (resolver.ip(), resolver.port());
    match (&fact.ipv4, &fact.ipv6, &fact.tcp) {
        (Ok(ipv4), Ok(ipv6), Ok(_)) => {
            let known = format!("{} IPv4 and {} IPv6 addresses of {name}", ipv4.len(), ipv6.len());
            Finding::ok(check, format!("{resolver} responds over UDP and TCP: {known}"))
        }
        (Err(why), Err(_), Err(_)) => Finding::error(
            check,
            format!("{resolver} does not respond: {why}"),
            format!("allow UDP and TCP port {port} to {address}, or write another one into `upstream.resolvers`"),
        ),
        (Err(why), _, Ok(_)) => Finding::error(
            check,
            format!("{resolver} does not respond over UDP: {why}"),
            format!("allow UDP port {port} to {address}"),
        ),
        (Ok(_), _, Err(why)) => Finding::warning(
            check,
            format!("{resolver} does not respond over TCP: {why}. Long responses fail"),
            format!("allow TCP port {port} to {address}"),
        ),
        (Err(why), Ok(_), Err(_)) => Finding::error(
            check,
            format!("{resolver} fails for IPv4 addresses of {name}: {why}"),
            format!("dig @{address} -p {port} {name} A"),
        ),
        (Ok(_), Err(why), Ok(_)) => Finding::warning(
            check,
            format!("{resolver} fails for IPv6 addresses of {name}: {why}. Browsers wait for them"),
            format!("dig @{address} -p {port} {name} AAAA"),
        ),
    }
}

/// Judges the clock, by that of the origin `name`.
pub(crate) fn clock(fact: &Result<ClockFact, String>, name: &str) -> Vec<Finding> {
    let check = Check::Clock;
    vec![match fact {
        Err(why) => Finding::skipped(check, format!("not compared with {name}: {why}. Another one: --name NAME")),
        Ok(ClockFact { ahead_ms, within_ms }) => {
            let way = if *ahead_ms < 0 { "behind" } else { "ahead" };
            let apart_s = (ahead_ms.abs() + 500) / 1000;
            if ahead_ms.abs() - within_ms > MOST_APART_MS {
                let text = format!("this machine's clock is {apart_s} s {way}, by {name}. Certificates are refused");
                Finding::error(check, text, "timedatectl set-ntp true")
            } else {
                Finding::ok(check, format!("this machine's clock is right, within {apart_s} s by {name}"))
            }
        }
    }]
}

/// The server that QUIC was tried with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QuicServer {
    /// The ground, for `split.transport: h3`.
    Ground(SocketAddr),
    /// A public server, by its name.
    Public(SocketAddr, String),
}

/// Judges the way of QUIC's packets.
pub(crate) fn quic(fact: &QuicFact, server: &QuicServer) -> Vec<Finding> {
    let check = Check::Udp443;
    let (address, who) = match server {
        QuicServer::Ground(address) => (address, format!("the ground {address}")),
        QuicServer::Public(address, name) => (address, format!("{name} ({address})")),
    };
    let why = match fact {
        QuicFact::Responded => return vec![Finding::ok(check, format!("{who} responds to QUIC"))],
        QuicFact::Silent => "does not respond to QUIC".to_owned(),
        QuicFact::Refused => "has no QUIC".to_owned(),
        QuicFact::NotSent(why) => format!("cannot be reached by QUIC: {why}"),
    };
    vec![match server {
        QuicServer::Ground(_) => Finding::error(
            check,
            format!("{who} {why}"),
            format!(
                "allow UDP port {} at the ground, or write `split: {{ transport: h2 }}` at both ends",
                address.port()
            ),
        ),
        QuicServer::Public(..) => Finding::warning(
            check,
            format!("{who} {why}. Browsers lose time until they use TCP"),
            "allow UDP port 443, or try another server: --name NAME",
        ),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::*;

    fn judged(ipv4: bool, ipv6: bool, tcp: bool) -> Finding {
        let fact = |good: bool| if good { Ok(Vec::new()) } else { Err("timed out".to_owned()) };
        let resolver = ([192, 0, 2, 53], 53).into();
        let facts = [ResolverFact { resolver, ipv4: fact(ipv4), ipv6: fact(ipv6), tcp: fact(tcp) }];
        resolvers(&facts, "example.org").remove(0)
    }

    #[test]
    fn a_resolver_is_judged_by_its_worst_way() {
        assert_eq!(judged(true, true, true).verdict, Verdict::Ok);
        for (ipv4, ipv6, tcp, verdict, words) in [
            (false, false, false, Verdict::Error, "does not respond: timed out"),
            (false, false, true, Verdict::Error, "over UDP"),
            (false, true, false, Verdict::Error, "IPv4 addresses of example.org"),
            (true, true, false, Verdict::Warning, "over TCP"),
            (true, false, true, Verdict::Warning, "IPv6 addresses of example.org"),
        ] {
            let found = judged(ipv4, ipv6, tcp);
            assert_eq!(found.verdict, verdict, "{found:?}");
            assert!(found.text.contains(words) && found.cure.is_some(), "{found:?}");
        }
    }

    #[test]
    fn a_clock_is_wrong_from_two_minutes_on() {
        let judged = |ahead_ms| clock(&Ok(ClockFact { ahead_ms, within_ms: 800 }), "example.org").remove(0);
        assert_eq!(judged(119_000).verdict, Verdict::Ok);
        assert_eq!(
            judged(-130_000).text,
            "this machine's clock is 130 s behind, by example.org. Certificates are refused"
        );
        assert_eq!(clock(&Err("timed out".to_owned()), "example.org")[0].verdict, Verdict::Skipped);
    }

    #[test]
    fn quic_to_the_ground_is_needed_and_to_others_is_better() {
        let address = ([192, 0, 2, 1], 8443).into();
        let ground = QuicServer::Ground(address);
        let public = QuicServer::Public(address, "example.org".to_owned());
        for (fact, ours, others) in [
            (QuicFact::Responded, Verdict::Ok, Verdict::Ok),
            (QuicFact::Silent, Verdict::Error, Verdict::Warning),
            (QuicFact::Refused, Verdict::Error, Verdict::Warning),
        ] {
            assert_eq!((quic(&fact, &ground)[0].verdict, quic(&fact, &public)[0].verdict), (ours, others));
        }
    }
}
