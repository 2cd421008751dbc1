//! The table of derived values. Each row has one value, its formula and the source of the formula.

use std::time::Duration;

use longhaul_config::{
    Bytes, Link, LinkModel, OverrideValue, Price, Rate, Role, Settings, TransportKey, show_duration,
};

use super::bounds::Bounds;
use super::capacity::{Capacity, Reasoned};
use super::compression::Compressors;
use super::failover::Failover;
use super::host::{CongestionControls, HostFacts};
use super::images::ImagesChoice;
use super::intervals::Intervals;
use super::link_queue::LinkQueue;
use super::links::{LinkPlan, MultipathUse};
use super::neighbours::Neighbours;
use super::packets::Packets;
use super::retransmission;
use super::target::{TargetChoice, TargetKind, choose};
use super::timers::{self, Timer, Timers, Traffic};
use super::value::{CongestionControl, Origin, Row, Value};
use super::warm::Warm;
use super::windows::{client_connection_window, stream_window};

/// The values computed from the link. The fields above `target` are the [`TransportKey`]s.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "TransportKey::purpose describes each of the fields that bear a key's name")]
pub struct Derived {
    pub bdp_down: Value<Bytes>,
    pub bdp_up: Value<Bytes>,
    pub congestion_control: Value<CongestionControl>,
    pub initial_window: Value<u32>,
    pub window_clamp: Value<Option<u32>>,
    pub send_buffer_max: Value<Bytes>,
    pub receive_buffer_max: Value<Bytes>,
    pub notsent_lowat: Value<Bytes>,
    pub user_timeout: Value<Duration>,
    /// The same for a socket of a pair's link, where one lost probe must not end a connection.
    pub link_timeout: Reasoned<Duration>,
    /// The same for a client of an edge.
    pub client_timeout: Reasoned<Duration>,
    pub keepalive_idle: Value<Duration>,
    pub keepalive_interval: Value<Duration>,
    pub keepalive_probes: Value<u32>,
    pub client_idle_timeout: Value<Duration>,
    pub upstream_idle_timeout: Value<Duration>,
    pub stream_idle_timeout: Value<Duration>,
    pub handshake_timeout: Value<Duration>,
    pub drain_time: Value<Duration>,
    pub stream_window: Value<Bytes>,
    pub connection_window: Value<Bytes>,
    pub concurrent_streams: Value<u32>,
    pub http3: Value<bool>,
    pub connection_buffer: Value<Bytes>,
    pub upstream_connections: Value<u32>,
    pub shards: Value<u32>,
    /// The threads and the memory of Envoy.
    pub capacity: Capacity,
    /// The intervals at which a pair sends bytes while no client does.
    pub intervals: Intervals,
    /// The timers of Envoy.
    pub timers: Timers,
    /// The bounds on headers, buffers and windows.
    pub bounds: Bounds,
    /// The sizes of packets on the link. None: `link.mtu` is `auto`, and the kernel finds them.
    pub packets: Option<Packets>,
    /// The longest time between two retransmissions of a segment. None: the kernel cannot bound it.
    pub retransmission: Option<Reasoned<Duration>>,
    /// The behaviour of a remote towards a ground that does not respond. None at other boxes.
    pub failover: Option<Failover>,
    /// The connections or streams that a remote opens in advance. None at other boxes.
    pub warm: Option<Warm>,
    /// The shares of the link.
    pub neighbours: Neighbours,
    /// The use of each of several links, the preferred one first. Empty with one link.
    pub links: Vec<LinkPlan>,
    /// The use of Multipath TCP between the ends of a pair.
    pub multipath: MultipathUse,
    /// The kernel's queue in front of the link.
    pub link_queue: LinkQueue,
    /// The levels of the compressors towards clients.
    pub compression: Compressors,
    /// The kind and the authorities of the targets of moved URLs, and the reason for the choice.
    pub target: TargetChoice,
    /// The choice for images.
    pub images: ImagesChoice,
    /// The model of the link's effect on a page.
    pub model: LinkModel,
    /// The rows that `longhaul check` prints, in the order of [`TransportKey::ALL`]. The levels of the compressors follow.
    pub rows: Vec<Row>,
}

/// The TCP payload of a full Ethernet packet with timestamps, in bytes: 1500 - 20 - 20 - 12.
const SEGMENT: u64 = 1448;
/// The kernel's own maxima of `tcp_wmem` and `tcp_rmem`, in bytes. Derived buffers are never smaller.
const KERNEL_WMEM: u64 = 4 << 20;
const KERNEL_RMEM: u64 = 6 << 20;
/// The bytes of the median page of 2025, measured in the lab.
const HEAVY_PAGE_BYTES: u64 = 2_862_000;

/// The streams of a pipe before another pipe is opened.
const PIPE_STREAMS: u64 = 1000;
/// The part of the heap for the windows of all pipes. Envoy resets the streams that hold most when the heap is full.
const PIPES_PART: u64 = 4;
/// The window of a pipe that is enough, and the streams that it has room for on any link.
const PIPE_WINDOW: Bytes = Bytes(256 << 20);
const LEAST_PIPE_STREAMS: u64 = 32;
/// The largest window of HTTP/2 (RFC 9113 section 6.9.1).
const MOST_WINDOW: u64 = (1 << 31) - 1;

/// The number of probes that must be lost in a row before an idle connection over a free link ends.
const LOST_PROBES: u32 = 3;

const RFC_6928: &str = "RFC 6928; lab: 6.0 s -> 4.7 s for one page at 600 ms";
const RFC_6349: &str = "RFC 6349 section 3.3";
const TCP_7: &str = "tcp(7)";
const PAPER_OUTAGE: &str = "WWW over GPRS, 2002: outages of 5 to 40 s";
const RFC_9000: &str = "RFC 9000, RFC 9114";
const RFC_9113: &str = "RFC 9113 section 6.9";

/// Computes every value. A key under `transport:` overrides the computed value. Values that depend on it use the
/// override.
#[must_use]
#[allow(clippy::too_many_lines, reason = "it is the table: one value a paragraph")]
pub fn derive(settings: &Settings, host: &HostFacts) -> Derived {
    let mut table = Table { settings, rows: Vec::new() };
    let model = LinkModel::of(&settings.link);
    let target = choose(settings, &model);
    let Link { rtt, down, up, price: _, mtu: _, fill: _, device: _ } = settings.link;
    let rtt_text = show_duration(rtt);
    // What the kernel sends at once follows from the preferred of several links, time-outs from the slowest, and buffers from all of
    // them.
    let (slow, all) = (settings.slowest_link(), settings.all_links());
    let slow_rtt_text = show_duration(slow.rtt);
    let intervals = Intervals::of(&idle_link(settings), &settings.role);

    let bdp_down = table.bytes(TransportKey::BdpDown, down.bytes_in(rtt), format!("{down} x {rtt_text} / 8"), RFC_6349);
    let bdp_up = table.bytes(TransportKey::BdpUp, up.bytes_in(rtt), format!("{up} x {rtt_text} / 8"), RFC_6349);
    let congestion_control = table.congestion_control(host);
    let initial_window = table.initial_window(bdp_down.value);
    let window_clamp = table.window_clamp();
    // The BDP of the link toward this box, and of the link away from it.
    let (down_row, up_row) = (("bdp_down", bdp_down.value), ("bdp_up", bdp_up.value));
    let (inward, outward) = if settings.role.stands_beside_clients() { (down_row, up_row) } else { (up_row, down_row) };
    let (inward_all, outward_all) = if settings.links.is_empty() {
        (inward, outward)
    } else {
        let of_all = |name, rate: Rate| (name, Bytes(rate.bytes_in(all.rtt)));
        (of_all("all rates down x the longest RTT", all.down), of_all("all rates up x the longest RTT", all.up))
    };
    let send_buffer_max = table.bytes(
        TransportKey::SendBufferMax,
        (outward_all.1.0.saturating_mul(4)).max(KERNEL_WMEM),
        format!(
            "4 x {} {} (twice in flight, twice for the kernel's own bookkeeping), at least {}",
            outward_all.0,
            outward_all.1,
            Bytes(KERNEL_WMEM)
        ),
        TCP_7,
    );
    let receive_buffer_max = table.bytes(
        TransportKey::ReceiveBufferMax,
        (inward_all.1.0.saturating_mul(4)).max(KERNEL_RMEM),
        format!(
            "4 x {} {} (twice in flight, twice for the kernel's own bookkeeping), at least {}",
            inward_all.0,
            inward_all.1,
            Bytes(KERNEL_RMEM)
        ),
        TCP_7,
    );
    let notsent_lowat = table.bytes(
        TransportKey::NotsentLowat,
        down.bytes_in(Duration::from_millis(50)).clamp(16 << 10, 256 << 10),
        format!("50 ms of {down}, from 16kib to 256kib: later answers overtake what has not been sent"),
        TCP_7,
    );
    let user_timeout = table.duration(
        TransportKey::UserTimeout,
        Duration::from_secs(40) + slow.rtt * 50,
        format!("40 s of outage + 50 x RTT {slow_rtt_text}"),
        PAPER_OUTAGE,
    );
    let keepalive_idle = table.duration(
        TransportKey::KeepaliveIdle,
        intervals.keepalive_idle,
        intervals.keepalive_reason.to_owned(),
        "RFC 5382 asks for 124 min; deployed NATs forget far sooner",
    );
    let keepalive_interval = table.duration(
        TransportKey::KeepaliveInterval,
        (slow.rtt * 10).max(Duration::from_secs(10)),
        format!("10 x RTT {slow_rtt_text}, at least 10 s"),
        TCP_7,
    );
    let keepalive_probes = table.count(
        TransportKey::KeepaliveProbes,
        clamp_count(40_000 / u64::try_from(keepalive_interval.value.as_millis()).unwrap_or(u64::MAX).max(1), 4, 10),
        "probes that last over 40 s of outage, from 4 to 10".to_owned(),
        PAPER_OUTAGE,
    );
    let client_idle_timeout = table.duration(
        TransportKey::ClientIdleTimeout,
        (Duration::from_mins(10) + slow.rtt * 1000).min(Duration::from_hours(1)),
        format!(
            "10 min, longer than a page is read or a program is silent, + 1000 x RTT {slow_rtt_text}: a new connection costs \
             two of them; at most 1h"
        ),
        "design: connections persist across pages (WWW 2004, section 3.1)",
    );
    let upstream_idle_timeout = table.duration(
        TransportKey::UpstreamIdleTimeout,
        Duration::from_mins(5),
        "longer than the next page of a reader on the same site; most origins close sooner".to_owned(),
        "design: connections to origins are shared by all clients",
    );
    let stream_idle_timeout = table.duration(
        TransportKey::StreamIdleTimeout,
        client_idle_timeout.value.max(Duration::from_secs(260) + user_timeout.value),
        format!(
            "client_idle_timeout {}, because events and paused videos are silent for as long as connections, and at least \
             260 s + user_timeout {}: longer than an outage, so that TCP decides first",
            show_duration(client_idle_timeout.value),
            show_duration(user_timeout.value)
        ),
        PAPER_OUTAGE,
    );
    let handshake_timeout = table.duration(
        TransportKey::HandshakeTimeout,
        Duration::from_secs(15) + slow.rtt * 20,
        format!("15 s + 20 x RTT {slow_rtt_text}: retransmitted handshakes finish, slow-loris does not last"),
        "RFC 6298 (doubling retransmissions)",
    );
    let drain_time = table.duration(
        TransportKey::DrainTime,
        round_up_to_seconds(slow.down.time_for(HEAVY_PAGE_BYTES) * 8)
            .clamp(Duration::from_mins(1), Duration::from_mins(10)),
        format!("8 pages of 2.9 MB at {}, from 60 s to 600 s", slow.down),
        "lab: the 2025 median page",
    );
    // A stream crosses all links in use at a time, and goes on over each of the others.
    let links = LinkPlan::all(&settings.links);
    let inward_most = LinkPlan::most_on_the_way(&links)
        .map_or(inward, |bytes| ("the largest bdp_down of one link, or of those in use together,", Bytes(bytes)));
    let multipath = MultipathUse::of(settings, host);
    let (bytes, formula) = stream_window(inward_most.0, inward_most.1, multipath);
    let stream_window = table.bytes(TransportKey::StreamWindow, bytes, formula, RFC_9113);
    let capacity = Capacity::of(settings, host);
    let connection_window = table.connection_window(stream_window.value, &capacity);
    // A remote's pages and its lookups have bounds of their own.
    let (streams, lookups) = match settings.role {
        Role::Ground(_) => {
            let lookups = Derived::LOOKUPS_AT_ONCE;
            (128 + lookups, format!(", and {lookups} lookups of a remote"))
        }
        Role::Edge | Role::Remote(_) => (128, String::new()),
    };
    let concurrent_streams = table.count(
        TransportKey::ConcurrentStreams,
        streams,
        format!("more than the objects of a page on one shard (73 in the 2025 median){lookups}"),
        "RFC 9113 section 6.5.2 advises 100 or more",
    );
    let http3 = table.http3();
    let connection_buffer = table.bytes(
        TransportKey::ConnectionBuffer,
        down.bytes_in(Duration::from_millis(500)).clamp(4 << 10, 32 << 10),
        format!(
            "half a second of {down}, from 4kib to 32kib: a larger chunk delays the first byte, smaller ones cost calls"
        ),
        "Envoy edge best practices; lab: over https, 2.8 s instead of 5.6 s on a cell of 78 kbit/s",
    );
    let upstream_connections = table.count(
        TransportKey::UpstreamConnections,
        64,
        "six for each of ten browsers: the proxy must not flood an origin".to_owned(),
        "browsers open six connections to a name",
    );
    let shards = table.shards(&target, bdp_down.value);
    let target = target.first(usize::try_from(shards.value).unwrap_or(usize::MAX));

    let compression = Compressors::of(settings.compress, &settings.link);
    let timers = Timers::of(&timers::From {
        settings,
        client_idle: client_idle_timeout.value,
        stream_idle: stream_idle_timeout.value,
        handshake: handshake_timeout.value,
        user_timeout: user_timeout.value,
        stream_window: stream_window.value,
        ping: intervals.ping,
        ping_reason: intervals.ping_reason,
    });

    let bounds = Bounds::of(settings, &connection_buffer, &stream_window, &connection_window);

    let remote = settings.role.remote();
    let failover = remote.map(|remote| Failover::of(remote, &slow, &intervals, user_timeout.value));
    Derived {
        bdp_down,
        bdp_up,
        congestion_control,
        initial_window,
        window_clamp,
        send_buffer_max,
        receive_buffer_max,
        notsent_lowat,
        link_timeout: link_timeout(
            &user_timeout,
            keepalive_idle.value,
            keepalive_interval.value,
            idle_link(settings).price,
        ),
        client_timeout: client_timeout(&user_timeout, &client_idle_timeout),
        user_timeout,
        keepalive_idle,
        keepalive_interval,
        keepalive_probes,
        client_idle_timeout,
        upstream_idle_timeout,
        stream_idle_timeout,
        handshake_timeout,
        drain_time,
        stream_window,
        connection_window,
        concurrent_streams,
        http3,
        connection_buffer,
        upstream_connections,
        shards,
        capacity,
        failover,
        warm: remote.map(|remote| Warm::of(remote, &settings.link)),
        intervals,
        timers,
        bounds,
        neighbours: Neighbours::of(settings),
        links,
        multipath,
        link_queue: LinkQueue::of(&settings.link, &settings.role),
        packets: settings.link.mtu.map(Packets::of),
        retransmission: retransmission::bound(&slow, host),
        images: ImagesChoice::of(settings),
        target,
        model,
        rows: [table.rows, compression.rows(&settings.role)].concat(),
        compression,
    }
}

impl Derived {
    /// The lookups of a remote that are streams of the pipe at the same time. A page with eighty new names waits for none.
    pub const LOOKUPS_AT_ONCE: u32 = 128;

    /// Returns all timers with their kind of traffic, those of one kind together.
    #[must_use]
    pub fn timers_by_traffic(&self) -> Vec<(&'static str, &Timer)> {
        let mut rows = self.timers.by_traffic();
        rows.extend(self.failover.iter().flat_map(Failover::timers).map(|timer| (Traffic::Pipe, timer)));
        rows.into_iter().map(|(traffic, timer)| (traffic.as_str(), timer)).collect()
    }
}

/// Returns the link that decides what an idle pair sends. Each of several links keeps subflows of the same connections, so
/// one that is metered decides for all.
fn idle_link(settings: &Settings) -> Link {
    let metered = settings.links.iter().any(|link| link.price == Price::Metered);
    Link { price: if metered { Price::Metered } else { settings.link.price }, ..settings.slowest_link() }
}

/// Collects the printed rows while values are computed.
struct Table<'a> {
    settings: &'a Settings,
    rows: Vec<Row>,
}

impl Table<'_> {
    /// Returns the operator's value if `read` accepts it, otherwise `computed`. Adds the row.
    fn settle<T>(
        &mut self,
        key: TransportKey,
        computed: T,
        formula: String,
        source: &'static str,
        read: impl Fn(&OverrideValue) -> Option<T>,
        show: impl Fn(&T) -> String,
    ) -> Value<T> {
        let written = self.settings.transport.get(&key).and_then(|o| read(&o.value).map(|value| (value, o.line)));
        let (value, formula, origin) = match written {
            None => (computed, formula, Origin::Derived),
            Some((value, line)) => (value, format!("{}, from {formula}", show(&computed)), Origin::Overridden { line }),
        };
        self.rows.push(Row {
            name: key.name(),
            value: show(&value),
            purpose: key.purpose(),
            formula: formula.clone(),
            source,
            origin,
        });
        Value { value, formula, source, origin }
    }

    /// Returns the window of all streams of a connection. Unread bytes of one stream take from it until they are read or the
    /// stream ends. On a pipe, all clients share it. So it is as long as the windows of all streams, as far as the memory
    /// reaches.
    fn connection_window(&mut self, stream: Bytes, capacity: &Capacity) -> Value<Bytes> {
        let own = client_connection_window(stream);
        if self.settings.role.is_alone() {
            let formula = format!("4 x stream_window {stream}, at most 64mib");
            return self.bytes(TransportKey::ConnectionWindow, own.0, formula, RFC_9113);
        }
        let value = pipe_window(stream, capacity);
        let formula = format!(
            "{PIPE_STREAMS} x stream_window {stream}, because all clients share a pipe; at most a quarter of the heap of {} \
             for the pipes of all workers ({}), and at most {PIPE_WINDOW} or {LEAST_PIPE_STREAMS} x stream_window",
            capacity.heap.value, capacity.workers.value
        );
        self.bytes(TransportKey::ConnectionWindow, value, formula, RFC_9113)
    }

    fn bytes(&mut self, key: TransportKey, computed: u64, formula: String, source: &'static str) -> Value<Bytes> {
        let read = |value: &OverrideValue| if let OverrideValue::Bytes(bytes) = value { Some(*bytes) } else { None };
        self.settle(key, Bytes(computed), formula, source, read, ToString::to_string)
    }

    fn duration(
        &mut self,
        key: TransportKey,
        computed: Duration,
        formula: String,
        source: &'static str,
    ) -> Value<Duration> {
        let read = |value: &OverrideValue| if let OverrideValue::Duration(time) = value { Some(*time) } else { None };
        self.settle(key, computed, formula, source, read, |time| show_duration(*time))
    }

    fn count(&mut self, key: TransportKey, computed: u32, formula: String, source: &'static str) -> Value<u32> {
        let read = |value: &OverrideValue| if let OverrideValue::Count(count) = value { Some(*count) } else { None };
        self.settle(key, computed, formula, source, read, ToString::to_string)
    }

    /// Returns the initial window, in segments. A browser opens six connections, and each gets a sixth of `bdp_down`.
    /// Together they fill the link at once, and no single one floods its queue.
    fn initial_window(&mut self, bdp_down: Bytes) -> Value<u32> {
        let segments = clamp_count(bdp_down.0.div_ceil(SEGMENT * 6), 10, 1000);
        let formula = format!("bdp_down {bdp_down} / 1448 B segments / 6 connections, from 10 to 1000");
        self.count(TransportKey::InitialWindow, segments, formula, RFC_6928)
    }

    fn window_clamp(&mut self) -> Value<Option<u32>> {
        self.settle(
            TransportKey::WindowClamp,
            None,
            "off: BBR paces packets to the link".to_owned(),
            "WWW over GPRS, 2002, clamps loss-based TCP",
            |value| match value {
                OverrideValue::Count(count) => Some(Some(*count)),
                OverrideValue::Off => Some(None),
                _ => None,
            },
            |clamp| clamp.map_or_else(|| "off".to_owned(), |segments| segments.to_string()),
        )
    }

    fn http3(&mut self) -> Value<bool> {
        let possible = self.settings.can_offer_http3();
        let formula = if possible {
            "on: a handshake is one round trip shorter, and a lost packet delays only its own request"
        } else {
            "off: no TLS ends here (`listen.tls`, `tls.terminate`)"
        };
        self.settle(
            TransportKey::Http3,
            possible,
            formula.to_owned(),
            RFC_9000,
            |value| if let OverrideValue::Switch(on) = value { Some(*on && possible) } else { None },
            |on| if *on { "on".to_owned() } else { "off".to_owned() },
        )
    }

    fn congestion_control(&mut self, host: &HostFacts) -> Value<CongestionControl> {
        let bbr = || CongestionControl::Named("bbr".to_owned());
        let (computed, formula) = match &host.congestion_controls {
            CongestionControls::Unknown => (bbr(), "bbr: on such links, loss is seldom congestion".to_owned()),
            CongestionControls::Known { allowed, available, default } => {
                let usable = if rustix::process::geteuid().is_root() { available } else { allowed };
                if default == "bbr" || usable.iter().any(|name| name == "bbr") {
                    (bbr(), "bbr: on such links, loss is seldom congestion".to_owned())
                } else if available.iter().any(|name| name == "bbr") {
                    let formula = format!(
                        "left at the host's {default}: bbr needs CAP_NET_ADMIN or net.ipv4.tcp_allowed_congestion_control"
                    );
                    (CongestionControl::HostDefault, formula)
                } else {
                    (
                        CongestionControl::HostDefault,
                        format!("left at the host's {default}: no bbr here (modprobe tcp_bbr)"),
                    )
                }
            }
        };
        let read = |value: &OverrideValue| match value {
            OverrideValue::Name(name) if name == "host" => Some(CongestionControl::HostDefault),
            OverrideValue::Name(name) => Some(CongestionControl::Named(name.clone())),
            _ => None,
        };
        self.settle(
            TransportKey::CongestionControl,
            computed,
            formula,
            "lab: all measurements ran with BBR",
            read,
            ToString::to_string,
        )
    }

    /// Returns the number of targets that are worth their handshakes.
    ///
    /// Over HTTP/2, the browser's receive window bounds a connection: it starts at 64 KB and doubles each round trip.
    /// Over HTTP/1.1, the six connections per name are the bound.
    fn shards(&mut self, target: &TargetChoice, bdp_down: Bytes) -> Value<u32> {
        let given = u32::try_from(target.ipv4.len().max(target.ipv6.len())).unwrap_or(u32::MAX);
        let (wanted, formula) = match target.kind {
            TargetKind::Https => {
                let wanted = clamp_count(bdp_down.0.div_ceil(6 * 65_536), 1, 4);
                (
                    wanted,
                    format!(
                        "bdp_down {bdp_down} / 6 / 64 KiB client window = {wanted}, from 1 to 4; {given} https name(s) given"
                    ),
                )
            }
            TargetKind::Http => (6, format!("every http address helps HTTP/1.1, up to 6; {given} given")),
            TargetKind::Nothing => (1, "nothing is moved".to_owned()),
        };
        let computed = wanted.min(given).max(1);
        self.count(
            TransportKey::Shards,
            computed,
            formula,
            "lab: two to four https names for heavy pages; 1, 2, 4, 6 http addresses",
        )
    }
}

/// Returns the window of a pipe whose streams have the window `stream`, in bytes.
fn pipe_window(stream: Bytes, capacity: &Capacity) -> u64 {
    let all = stream.0.saturating_mul(PIPE_STREAMS);
    let memory = capacity.heap.value.0 / PIPES_PART / u64::from(capacity.workers.value);
    let enough = PIPE_WINDOW.0.max(stream.0.saturating_mul(LEAST_PIPE_STREAMS));
    all.min(memory).min(enough).clamp(client_connection_window(stream).0, MOST_WINDOW)
}

fn clamp_count(value: u64, min: u32, max: u32) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX).clamp(min, max)
}

fn round_up_to_seconds(time: Duration) -> Duration {
    if time.subsec_nanos() == 0 { time } else { Duration::from_secs(time.as_secs() + 1) }
}

/// Returns the time after which a connection over the link ends whose other end acknowledges nothing. `idle` is the time until
/// the first probe, and `interval` that between two.
///
/// Linux counts it from the last byte that came, for an idle connection, too (tcp(7), `TCP_USER_TIMEOUT`). Where it is shorter
/// than the time until the first probe, one lost probe ends the connection. A probe without a response must not count as a
/// dead connection (RFC 1122, section 4.2.3.6).
fn link_timeout(
    user_timeout: &Value<Duration>,
    idle: Duration,
    interval: Duration,
    price: Price,
) -> Reasoned<Duration> {
    let several = idle + interval * LOST_PROBES;
    match (user_timeout.origin, price) {
        (Origin::Derived, Price::Free) if several > user_timeout.value => Reasoned {
            value: several,
            reason: format!(
                "user_timeout {}, but at least {}: fewer than {LOST_PROBES} lost probes end no connection (RFC 1122, section 4.2.3.6)",
                show_duration(user_timeout.value),
                show_duration(several)
            ),
        },
        (Origin::Derived, Price::Metered) if several > user_timeout.value => Reasoned {
            value: user_timeout.value,
            reason: format!(
                "{}. Probes of a metered link are so rare that one that is lost ends an idle connection",
                user_timeout.comment()
            ),
        },
        _ => Reasoned { value: user_timeout.value, reason: user_timeout.comment() },
    }
}

/// Returns the time after which a client's connection ends whose client acknowledges nothing, or takes nothing. TCP does not
/// tell one from the other (tcp(7), `TCP_USER_TIMEOUT`), and a player whose buffer is full takes nothing for minutes.
fn client_timeout(user_timeout: &Value<Duration>, idle: &Value<Duration>) -> Reasoned<Duration> {
    match user_timeout.origin {
        Origin::Overridden { .. } => Reasoned { value: user_timeout.value, reason: user_timeout.comment() },
        Origin::Derived => Reasoned {
            value: idle.value.max(user_timeout.value),
            reason: format!(
                "the longer of client_idle_timeout {} and {}: a client that takes nothing, as a paused player, is not gone",
                show_duration(idle.value),
                show_duration(user_timeout.value)
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn capacity(heap: u64, workers: u32) -> Capacity {
        let reason = String::new;
        Capacity {
            workers: Reasoned { value: workers, reason: reason() },
            objects: Bytes(0),
            heap: Reasoned { value: Bytes(heap), reason: reason() },
            start_patience: Duration::ZERO,
        }
    }

    #[test]
    fn a_pipe_has_room_for_many_unread_streams_within_memory() {
        let window = |stream, heap, workers| pipe_window(Bytes(stream), &capacity(heap, workers));
        // All streams, where they are short.
        assert_eq!(window(64 * KIB, 4096 * MIB, 2), 64 * KIB * PIPE_STREAMS);
        // Ship: 2 Mbit/s, 700 ms; GEO: 20 Mbit/s, 600 ms.
        assert_eq!(window(350_000, 4096 * MIB, 2), 256 * MIB);
        assert_eq!(window(3_000_000, 4096 * MIB, 2), 256 * MIB);
        assert_eq!(window(16 * MIB, 65_536 * MIB, 2), 512 * MIB);
        // Memory decides on a small machine: all workers' pipes take a quarter of the heap.
        assert_eq!(window(3_000_000, 672 * MIB, 2), 84 * MIB);
        assert_eq!(window(3_000_000, 672 * MIB, 4), 42 * MIB);
        // It never falls below what one client has, nor above what the protocol can say.
        assert_eq!(window(3_000_000, 64 * MIB, 8), 12_000_000);
        assert_eq!(window(1 << 40, 1 << 60, 1), MOST_WINDOW);
    }

    #[test]
    fn one_lost_probe_ends_no_connection_over_a_free_link() {
        let user_timeout =
            |origin| Value { value: Duration::from_secs(43), origin, formula: String::new(), source: TCP_7 };
        let (idle, interval) = (Duration::from_secs(45), Duration::from_secs(10));
        let seconds = |origin, idle, price| link_timeout(&user_timeout(origin), idle, interval, price).value.as_secs();
        assert_eq!(seconds(Origin::Derived, idle, Price::Free), 75, "sent after 45, 55 and 65 s");
        assert_eq!(seconds(Origin::Derived, interval, Price::Free), 43);
        assert_eq!(seconds(Origin::Derived, idle, Price::Metered), 43);
        assert_eq!(seconds(Origin::Overridden { line: 1 }, idle, Price::Free), 43);
    }

    #[test]
    fn the_connection_of_one_client_has_four_of_its_streams() {
        assert_eq!(client_connection_window(Bytes(350_000)), Bytes(1_400_000));
        assert_eq!(client_connection_window(Bytes(1)), Bytes(64 * KIB));
        assert_eq!(client_connection_window(Bytes(64 * MIB)), Bytes(64 * MIB));
    }
}
