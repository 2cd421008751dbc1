//! Watches the resolvers of `upstream.resolvers` while a run serves.
//!
//! CoreDNS checks a resolver only after queries to it have failed, and reports no state. A thread therefore sends each
//! resolver one small query every few seconds, the one that CoreDNS's own health check sends. It also reads CoreDNS's
//! counters, because a resolver may respond and yet fail every query.
//!
//! It also sends each resolver now and then, and a silent one at once, a query for a name that only this box knows. A right
//! response means that the resolver has asked this box: a loop.
//!
//! A remote's resolvers lie beyond the slow link, so it sends them nothing.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use longhaul_config::Settings;
use longhaul_observe::report::{DnsReport, ResolverReport};
use longhaul_observe::{Endpoint, Scrape};

use super::events::Event;
use super::watch_thread::Watch;
use crate::dns_query::{self, Over};

/// The pause between two rounds of queries.
const PAUSE: Duration = Duration::from_secs(3);
/// The time that a resolver has for a response. Resolvers stand on the wired side of the link.
const TIMEOUT: Duration = Duration::from_millis(1500);
/// Queries in a round until a resolver counts as silent, because UDP loses packets.
const ATTEMPTS: u32 = 2;
/// The time for a query that goes round over the link.
const ROUND: Duration = Duration::from_secs(4);
/// The rounds between two looks for a loop at a resolver that responds.
const LOOK_FOR_LOOPS: u32 = 20;
/// The name whose text only this box knows (`coredns-plugin/tell`).
const LOOP: &str = "loop.pair.invalid";
/// Failed queries without a success between them until the DNS counts as failing. One broken domain costs a browser
/// about six: three types, each asked twice.
const STREAK: u64 = 10;
/// The time without failed queries after which a streak is over, because nobody asks any more.
const REST: Duration = Duration::from_mins(1);

/// The resolvers and counters to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Watched {
    resolvers: Vec<SocketAddr>,
    /// The metrics of CoreDNS. None: no client asks it.
    metrics: Option<Endpoint>,
}

impl Watched {
    fn of(settings: &Settings, metrics: &Endpoint) -> Self {
        // The ground resolves for its remote.
        let resolvers =
            if settings.role.stands_beside_clients() { Vec::new() } else { settings.upstream.resolvers.clone() };
        Self { resolvers, metrics: settings.listen.dns.as_ref().map(|_| metrics.clone()) }
    }
}

/// Starts the thread. It reports to `events` when the state changes. `metrics` is where CoreDNS counts.
/// `own` is the text that this box's DNS tells by its name for loops.
pub(super) fn watch(settings: &Settings, metrics: Endpoint, own: String, events: Sender<Event>) -> io::Result<Watch> {
    let mut watched = Watched::of(settings, &metrics);
    Watch::start("resolvers", move |changes| {
        let mut last = DnsReport::default();
        let mut streak = FailureStreak::default();
        let mut others = OtherResolvers::default();
        let mut round = 0;
        loop {
            let counted = counts(watched.metrics.as_ref());
            let report = DnsReport {
                resolvers: ask_all(&watched.resolvers, &own, round % LOOK_FOR_LOOPS == 0),
                every_query_fails: counted.is_some_and(|counts| streak.add(counts, Instant::now())),
                asks_others: counted.is_some_and(|counts| others.add(counts.encrypted, Instant::now())),
            };
            if report != last && events.send(Event::Dns(report.clone())).is_err() {
                break;
            }
            last = report;
            round += 1;
            match changes.recv_timeout(PAUSE) {
                Ok(next) => (watched, round) = (Watched::of(&next, &metrics), 0),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    })
}

/// Asks all resolvers at once. Looks for a loop at those that are silent, and at all if `looks`.
fn ask_all(resolvers: &[SocketAddr], own: &str, looks: bool) -> Vec<ResolverReport> {
    let one = |address: SocketAddr| {
        thread::scope(|scope| {
            let up = scope.spawn(|| (0..ATTEMPTS).any(|_| responds(address)));
            let early = looks.then(|| scope.spawn(|| loops(address, own)));
            let up = up.join().unwrap_or(false);
            let asks_us = match early {
                Some(early) => early.join().unwrap_or(false),
                None => !up && loops(address, own),
            };
            ResolverReport { address, up, loops: asks_us }
        })
    };
    thread::scope(|scope| {
        let asked: Vec<_> = resolvers.iter().map(|address| (*address, scope.spawn(|| one(*address)))).collect();
        let silent = |address| ResolverReport { address, up: false, loops: false };
        asked.into_iter().map(|(address, report)| report.join().unwrap_or_else(|_| silent(address))).collect()
    })
}

/// Returns true if the resolver asks this box.
fn loops(resolver: SocketAddr, own: &str) -> bool {
    dns_query::text(resolver, LOOP, Over::Udp, ROUND).is_ok_and(|text| text.as_deref() == Some(own.as_bytes()))
}

/// Returns true if the resolver responds to a query for the name servers of the root, with whatever result.
fn responds(resolver: SocketAddr) -> bool {
    ask(resolver, TIMEOUT).unwrap_or(false)
}

fn ask(resolver: SocketAddr, timeout: Duration) -> io::Result<bool> {
    let any: SocketAddr =
        if resolver.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = UdpSocket::bind(any)?;
    // A connected socket receives no packets of others, and learns that the port is closed.
    socket.connect(resolver)?;
    socket.set_read_timeout(Some(timeout))?;
    let id = SystemTime::now().duration_since(UNIX_EPOCH).map_or([7, 7], |time| {
        let [_, _, high, low] = time.subsec_micros().to_be_bytes();
        [high, low]
    });
    socket.send(&root_query(id))?;
    let mut response = [0; 512];
    let length = socket.recv(&mut response)?;
    Ok(response.get(..length).is_some_and(|response| is_response(response, id)))
}

/// Returns the query `. IN NS` with recursion desired (RFC 1035 section 4.1).
fn root_query([high, low]: [u8; 2]) -> [u8; 17] {
    [high, low, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1]
}

fn is_response(message: &[u8], [high, low]: [u8; 2]) -> bool {
    matches!(message, [h, l, flags, ..] if (*h, *l) == (high, low) && flags & 0x80 != 0)
}

/// Responses of CoreDNS since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    all: u64,
    failed: u64,
    /// Queries for the addresses of public resolvers over https or TLS.
    encrypted: u64,
}

fn counts(metrics: Option<&Endpoint>) -> Option<Counts> {
    let scrape = Scrape::parse(&metrics?.page("/metrics").ok()?);
    let of = |rcode| scrape.sum_of("coredns_dns_responses_total", "rcode", rcode);
    Some(Counts {
        all: scrape.sum("coredns_dns_responses_total"),
        failed: of("SERVFAIL") + of("REFUSED"),
        encrypted: scrape.sum("coredns_longhaul_encrypted_resolver_lookups_total"),
    })
}

/// The time for which a client is believed to use encrypted DNS after it looked up such a resolver.
const REMEMBERED: Duration = Duration::from_mins(10);

/// Clients that ask resolvers elsewhere over https or TLS.
#[derive(Debug, Default)]
struct OtherResolvers {
    before: Option<u64>,
    last: Option<Instant>,
}

impl OtherResolvers {
    /// Adds the counter at `now`. Returns true if a client looked up such a resolver of late.
    fn add(&mut self, encrypted: u64, now: Instant) -> bool {
        if self.before.replace(encrypted).is_some_and(|before| encrypted > before) {
            self.last = Some(now);
        }
        self.last.is_some_and(|last| now.duration_since(last) < REMEMBERED)
    }
}

/// Failed queries without a success between them.
#[derive(Debug, Default)]
struct FailureStreak {
    before: Option<Counts>,
    failed: u64,
    last_failure: Option<Instant>,
}

impl FailureStreak {
    /// Adds the counters at `now`. Returns true if every query of late has failed.
    fn add(&mut self, counts: Counts, now: Instant) -> bool {
        let before = self.before.replace(counts).unwrap_or(counts);
        // Counters that shrink are those of a new process.
        let failed = counts.failed.saturating_sub(before.failed);
        let good = counts.all.saturating_sub(before.all).saturating_sub(failed);
        if good > 0 || self.last_failure.is_some_and(|last| now.duration_since(last) > REST) {
            self.failed = 0;
        }
        if good == 0 && failed > 0 {
            self.failed += failed;
            self.last_failure = Some(now);
        }
        self.failed >= STREAK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resolver_that_responds_is_up_whatever_it_says_and_a_closed_port_is_down_at_once() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let serving = thread::spawn(move || {
            let mut query = [0; 512];
            let (length, client) = server.recv_from(&mut query).unwrap();
            // A response with the code REFUSED.
            query[2] |= 0x80;
            query[3] |= 5;
            server.send_to(&query[..length], client).unwrap();
        });
        assert!(responds(address));
        serving.join().unwrap();
        let began = Instant::now();
        assert_eq!(ask_all(&[address], "own", false), [ResolverReport { address, up: false, loops: false }]);
        assert!(began.elapsed() < TIMEOUT);
        assert!(!is_response(&root_query([1, 2]), [1, 2]), "a query is no response");
    }

    #[test]
    fn a_client_with_encrypted_dns_is_remembered_for_some_minutes() {
        let start = Instant::now();
        let mut others = OtherResolvers::default();
        let mut add = |count, s| others.add(count, start + Duration::from_secs(s));
        assert!(!add(7, 0), "from before");
        assert!(add(8, 3) && add(8, 600));
        assert!(!add(8, 604));
    }

    #[test]
    fn the_dns_fails_when_many_queries_failed_and_none_succeeded() {
        let start = Instant::now();
        let mut streak = FailureStreak::default();
        let mut add = |all, failed, s| streak.add(Counts { all, failed, encrypted: 0 }, start + Duration::from_secs(s));
        assert!(!add(1000, 500, 0), "failures from before");
        assert!(!add(1006, 506, 4), "one broken domain");
        assert!(add(1010, 510, 8));
        assert!(add(1010, 510, 12), "nobody asked since");
        assert!(!add(1012, 511, 16), "one succeeded");
        assert!(!add(1020, 519, 20));
        assert!(add(1022, 521, 24));
        assert!(!add(1022, 521, 100), "long ago");
        assert!(!add(3, 3, 104), "CoreDNS was started again");
        assert!(!add(5, 5, 105));
        assert!(add(15, 15, 106));
    }
}
