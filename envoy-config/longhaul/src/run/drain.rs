//! Decides when a drain is over, from the figures of Envoy.
//!
//! A request ends with its response. The end of an opaque stream, such as TLS that passes through or a `WebSocket`, is not
//! visible: such streams count while bytes pass, and for a short time afterwards.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use longhaul_config::DrainTimes;

/// A regular expression of the figures that [`UnderWay::parse`] reads.
pub(super) const STATS: &str = r"^(http\.edge_[a-z]+\.downstream_(rq_active|cx_active|cx_upgrades_active|cx_[rt]x_bytes_total)|tcp\.[a-z_]+\.downstream_cx_[rt]x_bytes_total|listener\..+_[0-9]+\.downstream_(pre_)?cx_active|cluster\.pushed\.upstream_rq_active)$";
/// The streams that remotes hold open for names that are sent before they are asked. They have no end, and no client waits.
const HELD: &str = "cluster.pushed.upstream_rq_active";
/// The time without a byte after which opaque streams no longer count. Two lost packets on a satellite link, and their
/// retransmission, pass in less.
const QUIET: Duration = Duration::from_secs(5);
/// The time without anything under way that ends a drain. A request may arrive while the listeners close.
const SETTLED: Duration = Duration::from_millis(100);

/// The requests and streams of clients that are under way at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct UnderWay {
    /// The requests without a complete response.
    requests: u64,
    /// The opaque streams: connections that are not HTTP, `WebSockets`, and CONNECT.
    streams: u64,
    /// The bytes that passed from and to clients since the start.
    bytes: u64,
    /// The HTTP connections without a request, connections from which no byte has come yet, and unfinished handshakes.
    idle: u64,
}

impl UnderWay {
    /// Sums Envoy's figures ([`STATS`]). `ports` are those of the listeners of clients or of the other end of a pair.
    pub(super) fn parse(stats: &str, ports: &BTreeSet<u16>) -> Self {
        let (mut requests, mut upgrades, mut http, mut connections, mut bytes) = (0_u64, 0_u64, 0_u64, 0_u64, 0_u64);
        let (mut silent, mut held) = (0_u64, 0_u64);
        let figures = stats.lines().filter_map(|line| line.rsplit_once(": "));
        for (name, value) in figures.filter_map(|(name, value)| Some((name, value.trim().parse::<u64>().ok()?))) {
            if name == HELD {
                held = value;
            } else if name.ends_with("_bytes_total") {
                bytes = bytes.saturating_add(value);
            } else if name.ends_with(".downstream_rq_active") {
                requests += value;
            } else if name.ends_with(".downstream_cx_upgrades_active") {
                upgrades += value;
            } else if name.starts_with("http.") {
                http += value;
            } else if port_of_listener(name).is_some_and(|port| ports.contains(&port)) {
                *(if name.ends_with(".downstream_pre_cx_active") { &mut silent } else { &mut connections }) += value;
            }
        }
        let (streams, requests) =
            (upgrades + connections.saturating_sub(http), requests.saturating_sub(upgrades + held));
        let idle = silent + http.saturating_sub(upgrades + requests);
        Self { requests, streams, bytes, idle }
    }

    /// Adds connections that are not made yet.
    pub(super) fn and_handshakes(self, count: usize) -> Self {
        Self { idle: self.idle.saturating_add(u64::try_from(count).unwrap_or(u64::MAX)), ..self }
    }

    fn has_clients(self) -> bool {
        !self.is_nothing() || self.idle > 0
    }

    fn is_nothing(self) -> bool {
        self.requests == 0 && self.streams == 0
    }
}

/// Returns the port in `listener.ADDRESS_PORT.downstream_cx_active` and its like.
fn port_of_listener(name: &str) -> Option<u16> {
    let (address, _) = name.strip_prefix("listener.")?.rsplit_once(".downstream_")?;
    address.rsplit_once('_')?.1.parse().ok()
}

impl fmt::Display for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests and {} other connections", self.requests, self.streams)
    }
}

/// The next action of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrainStep {
    /// Serve on: balancers still send connections.
    Serve,
    /// Close the listeners. This comes once.
    Close,
    /// Wait for what is under way.
    Await,
    /// End the children.
    End(Ending),
}

/// The reason why a drain is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// No client waits for anything.
    NothingUnderWay,
    /// `drain.time` is over before this ended.
    TimeOver(UnderWay),
}

/// The state of a drain.
#[derive(Debug)]
pub(super) struct Drain {
    /// The end of `drain.wait`.
    serve_until: Instant,
    /// By then, every handshake that was on its way has ended.
    close_at: Instant,
    /// From then on, a connection without a request has none on its way.
    idle_at: Instant,
    end_at: Instant,
    longest: Duration,
    closed: bool,
    last: UnderWay,
    /// The last time at which bytes passed.
    moved_at: Option<Instant>,
    /// The time since when no look found anything under way.
    nothing_since: Option<Instant>,
}

impl Drain {
    /// Begins a drain. `round_trip` is that to the clients. A handshake takes so much, and a listener that closes before its
    /// end resets the connection. The first request on a connection arrives so much after the connection, or twice that
    /// much if a packet is lost. The packet rules are gone by now, so new connections go to the origins.
    pub(super) fn begin(times: DrainTimes, round_trip: Duration, now: Instant) -> Self {
        // A packet of a handshake may be lost.
        let wait = times.wait.max(round_trip * 2);
        let close_at = now + wait;
        Self {
            serve_until: now + times.wait,
            close_at,
            idle_at: close_at + round_trip * 2,
            end_at: close_at + times.time,
            longest: wait + times.time,
            closed: false,
            last: UnderWay::default(),
            moved_at: None,
            nothing_since: None,
        }
    }

    /// Returns the longest time that it takes.
    pub(super) fn longest(&self) -> Duration {
        self.longest
    }

    /// Returns the next step. `look` returns what is under way, or None while Envoy does not respond. Call it often.
    pub(super) fn next(&mut self, now: Instant, look: impl FnOnce() -> Option<UnderWay>) -> DrainStep {
        if now < self.serve_until {
            return DrainStep::Serve;
        }
        if !self.closed {
            // The kernel tells of every handshake that is on its way.
            if now < self.close_at && look().is_none_or(UnderWay::has_clients) {
                return DrainStep::Serve;
            }
            self.closed = true;
            return DrainStep::Close;
        }
        if look().is_some_and(|seen| self.is_nothing(seen, now)) {
            let since = *self.nothing_since.get_or_insert(now);
            if now.saturating_duration_since(since) >= SETTLED {
                return DrainStep::End(Ending::NothingUnderWay);
            }
        } else {
            self.nothing_since = None;
        }
        self.over(now).map_or(DrainStep::Await, DrainStep::End)
    }

    /// Returns the end of a drain whose time is over.
    pub(super) fn over(&self, now: Instant) -> Option<Ending> {
        (now >= self.end_at).then_some(Ending::TimeOver(self.last))
    }

    fn is_nothing(&mut self, seen: UnderWay, now: Instant) -> bool {
        let moved = seen.bytes != self.last.bytes;
        self.last = seen;
        let moved_at = *self.moved_at.get_or_insert(now);
        if moved {
            self.moved_at = Some(now);
            return self.is_over(seen, now);
        }
        self.is_over(seen, now) || (seen.requests == 0 && now.saturating_duration_since(moved_at) >= QUIET)
    }

    fn is_over(&self, seen: UnderWay, now: Instant) -> bool {
        seen.is_nothing() && (seen.idle == 0 || now >= self.idle_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: DrainTimes = DrainTimes { wait: Duration::from_secs(5), time: Duration::from_secs(30) };

    fn drained(times: DrainTimes, mut seen: impl FnMut(u64) -> Option<UnderWay>) -> (u64, Vec<DrainStep>) {
        let start = Instant::now();
        let mut drain = Drain::begin(times, Duration::from_millis(600), start);
        let mut steps = Vec::new();
        for tick in 0.. {
            let step = drain.next(start + Duration::from_millis(100 * tick), || seen(tick));
            if steps.last() != Some(&step) {
                steps.push(step);
            }
            if let DrainStep::End(_) = step {
                return (tick, steps);
            }
        }
        unreachable!()
    }

    #[test]
    fn an_idle_box_ends_at_once_and_serves_on_for_the_wait_if_there_is_one() {
        let none = |_| Some(UnderWay::default());
        let end = DrainStep::End(Ending::NothingUnderWay);
        let (ticks, steps) = drained(DrainTimes { wait: Duration::ZERO, ..TIMES }, none);
        assert!(ticks <= 3, "{ticks}");
        assert_eq!(steps, [DrainStep::Close, DrainStep::Await, end]);
        let (ticks, steps) = drained(TIMES, none);
        assert_eq!(ticks, 52);
        assert_eq!(steps, [DrainStep::Serve, DrainStep::Close, DrainStep::Await, end]);
    }

    #[test]
    fn a_box_with_clients_serves_on_for_the_time_of_a_handshake() {
        let request = UnderWay { requests: 1, ..UnderWay::default() };
        let handshake = UnderWay::default().and_handshakes(1);
        for (busy, until, closes_at) in [(request, 20, 12), (handshake, 20, 12), (handshake, 7, 7)] {
            let seen = |tick| Some(if tick < until { busy } else { UnderWay::default() });
            let mut closed_at = None;
            let times = DrainTimes { wait: Duration::ZERO, ..TIMES };
            let (start, round_trip) = (Instant::now(), Duration::from_millis(600));
            let mut drain = Drain::begin(times, round_trip, start);
            for tick in 0..20 {
                let step = drain.next(start + Duration::from_millis(100 * tick), || seen(tick));
                if step == DrainStep::Close {
                    closed_at = Some(tick);
                }
            }
            assert_eq!(closed_at, Some(closes_at));
        }
    }

    #[test]
    fn a_request_counts_until_its_response_ends_or_the_time_is_over() {
        let busy = UnderWay { requests: 2, ..UnderWay::default() };
        let (ticks, _) = drained(TIMES, |tick| Some(if tick < 200 { busy } else { UnderWay::default() }));
        assert_eq!(ticks, 201);
        let (ticks, steps) = drained(TIMES, |_| Some(busy));
        assert_eq!((ticks, steps.last()), (350, Some(&DrainStep::End(Ending::TimeOver(busy)))));
        let (ticks, _) = drained(TIMES, |_| None);
        assert_eq!(ticks, 350, "an Envoy that does not respond may be busy");
    }

    #[test]
    fn an_idle_connection_counts_for_two_round_trips_after_the_listeners_closed() {
        let (ticks, steps) = drained(TIMES, |_| Some(UnderWay { idle: 3, ..UnderWay::default() }));
        assert_eq!((ticks, steps.last()), (50 + 12 + 1, Some(&DrainStep::End(Ending::NothingUnderWay))));
    }

    #[test]
    fn an_opaque_stream_counts_while_bytes_pass_and_five_seconds_longer() {
        let (ticks, steps) =
            drained(TIMES, |tick| Some(UnderWay { streams: 1, bytes: tick.min(100), ..UnderWay::default() }));
        assert_eq!((ticks, steps.last()), (151, Some(&DrainStep::End(Ending::NothingUnderWay))));
    }

    #[test]
    fn the_figures_of_envoy_tell_requests_from_opaque_streams() {
        let page = "http.edge_http.downstream_cx_active: 4\nhttp.edge_http.downstream_cx_upgrades_active: 1\n\
                    http.edge_http.downstream_rq_active: 2\nlistener.0.0.0.0_80.downstream_pre_cx_active: 1\nhttp.edge_tls.downstream_cx_tx_bytes_total: 40\n\
                    listener.0.0.0.0_80.downstream_cx_active: 4\nlistener.[__]_443.downstream_cx_active: 2\n\
                    listener.127.0.0.1_40001.downstream_cx_active: 7\ntcp.pass_through.downstream_cx_rx_bytes_total: 2\n";
        let seen = UnderWay::parse(page, &BTreeSet::from([80, 443]));
        assert_eq!(seen, UnderWay { requests: 1, streams: 3, bytes: 42, idle: 3 });
        assert_eq!(UnderWay::parse("", &BTreeSet::new()), UnderWay::default());
    }

    #[test]
    fn a_stream_for_names_that_a_remote_holds_open_is_nothing_under_way() {
        let page = "http.edge_pipe.downstream_cx_active: 1\nhttp.edge_pipe.downstream_rq_active: 2\n\
                    cluster.pushed.upstream_rq_active: 2\nlistener.0.0.0.0_8443.downstream_cx_active: 1\n";
        let seen = UnderWay::parse(page, &BTreeSet::from([8443]));
        assert_eq!(seen, UnderWay { idle: 1, ..UnderWay::default() });
    }
}
