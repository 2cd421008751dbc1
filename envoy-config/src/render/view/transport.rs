//! Transport values in Envoy's notation. Each has a comment about its origin.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;

use crate::config::{Role, RoleName, Settings};
use crate::derive::{CongestionControl, Derived, Origin, Timer, Value, client_connection_window};
use crate::render::windows::{QUIC_CONNECTION_WINDOW_BYTES, QUIC_STREAM_WINDOW_BYTES, http2_window};

/// A value and the comment beside it.
#[derive(Debug, Serialize)]
pub(super) struct Commented<T> {
    pub(super) value: T,
    pub(super) comment: String,
}

/// The transport values. Durations are in Envoy's notation (`1.5s`), and sizes are in bytes.
#[derive(Debug, Serialize)]
pub(super) struct Transport {
    /// The kernel's name of the congestion control, in base64, as the value of a socket option. None: the host's
    /// default.
    congestion_control: Option<Commented<String>>,
    notsent_lowat: Commented<u64>,
    user_timeout_ms: Commented<u64>,
    keepalive_idle_s: Commented<u64>,
    keepalive_interval_s: Commented<u64>,
    keepalive_probes: Commented<u32>,
    client_idle_timeout: Commented<String>,
    upstream_idle_timeout: Commented<String>,
    stream_idle_timeout: Commented<String>,
    handshake_timeout: Commented<String>,
    request_headers_timeout: Commented<String>,
    delayed_close_timeout: Commented<String>,
    pipe_end_delay: Commented<String>,
    silent_tls: Commented<String>,
    silent_http: Commented<String>,
    origin_connect: Commented<String>,
    lookup: Commented<String>,
    stream_window: Commented<u64>,
    connection_window: Commented<u64>,
    client_connection_window: Commented<u64>,
    quic_stream_window: Commented<u64>,
    quic_connection_window: Commented<u64>,
    /// True if QUIC uses BBR. It does, unless the operator chose another congestion control for TCP.
    quic_bbr: bool,
    concurrent_streams: Commented<u32>,
    connection_buffer: Commented<u64>,
    listener_buffer: Commented<u64>,
    upstream_connections: Commented<u32>,
    /// The most that a request of a client has: KiB of header, and fields.
    header_kib: Commented<u64>,
    header_fields: u64,
    /// The most that a request has between the hops, which add fields of their own.
    inner_header_kib: u64,
    inner_header_fields: u64,
    /// The most that a response of an origin has.
    response_header_kib: Commented<u64>,
    response_header_fields: u64,
    /// The most that a response has between the hops.
    inner_response_header_kib: u64,
    inner_response_header_fields: u64,
    pipe_connect_timeout: Commented<String>,
    pipe_ping_interval: Commented<String>,
    pipe_ping_timeout: Commented<String>,
    pipe_quic_idle: Commented<String>,
}

/// The largest header block that Envoy accepts, in KiB.
const MAX_HEADER_KIB: u64 = 8192;

/// The most fields that a request of a client has. nginx and Apache take 100 and 200.
const REQUEST_FIELDS: u64 = 200;

/// The header of a response that browsers accept, in KiB: Chromium takes 256, Firefox 384.
const BROWSERS_HEADER_KIB: u64 = 256;

/// The header of a response that crosses a pipe, in KiB. Envoy's HTTP/2 ends a stream with a field of 96 KiB, and the
/// remote would send the request again and again.
const PIPES_HEADER_KIB: u64 = 92;

/// The most fields that a response of an origin has. Browsers have no such limit.
const RESPONSE_FIELDS: u64 = 1000;

/// The room for the fields that the hops add, in KiB and in fields. The outer hop enforces the limit. An inner hop with
/// the same limit would refuse a message that the outer hop made larger.
const ROOM_KIB: u64 = 16;
const ROOM_FIELDS: u64 = 32;

impl Transport {
    pub(super) fn new(settings: &Settings, d: &Derived) -> Self {
        let link = &settings.link;
        let header = settings.limits.header;
        let header_kib = header.0.div_ceil(1024).clamp(1, MAX_HEADER_KIB);
        let (most, whose) = match &settings.role {
            Role::Edge => (BROWSERS_HEADER_KIB, "that browsers accept"),
            Role::Remote(_) | Role::Ground(_) => (PIPES_HEADER_KIB, "that a field may have on a pipe"),
        };
        let response_header_kib = header_kib.max(most);
        let with_room = |kib: u64| (kib + ROOM_KIB).min(MAX_HEADER_KIB);
        Self {
            congestion_control: match &d.congestion_control.value {
                CongestionControl::HostDefault => None,
                CongestionControl::Named(name) => Some(Commented {
                    value: BASE64_STANDARD.encode(name),
                    comment: format!("{name}: {}", d.congestion_control.comment()),
                }),
            },
            notsent_lowat: commented(&d.notsent_lowat, |bytes| bytes.0),
            user_timeout_ms: commented(&d.user_timeout, |time| millis(*time)),
            keepalive_idle_s: commented(&d.keepalive_idle, |time| time.as_secs().max(1)),
            keepalive_interval_s: commented(&d.keepalive_interval, |time| time.as_secs().max(1)),
            keepalive_probes: commented(&d.keepalive_probes, |count| *count),
            client_idle_timeout: commented(&d.client_idle_timeout, |time| envoy(*time)),
            upstream_idle_timeout: commented(&d.upstream_idle_timeout, |time| envoy(*time)),
            stream_idle_timeout: commented(&d.stream_idle_timeout, |time| envoy(*time)),
            handshake_timeout: commented(&d.handshake_timeout, |time| envoy(*time)),
            request_headers_timeout: timer(&d.timers.request_headers),
            delayed_close_timeout: timer(&d.timers.early_end),
            pipe_end_delay: timer(&d.timers.pipe_end),
            silent_tls: timer(&d.timers.silent_tls),
            silent_http: timer(&d.timers.silent_http),
            origin_connect: timer(&d.timers.origin_connect),
            lookup: timer(&d.timers.lookup),
            stream_window: commented(&d.stream_window, |bytes| http2_window(bytes.0)),
            connection_window: commented(&d.connection_window, |bytes| http2_window(bytes.0)),
            client_connection_window: client_window(settings, d),
            quic_stream_window: commented(&d.stream_window, |bytes| bytes.0.min(QUIC_STREAM_WINDOW_BYTES)),
            quic_connection_window: commented(&d.connection_window, |bytes| bytes.0.min(QUIC_CONNECTION_WINDOW_BYTES)),
            quic_bbr: !matches!(
                (&d.congestion_control.value, d.congestion_control.origin),
                (CongestionControl::Named(name), Origin::Overridden { .. }) if !name.starts_with("bbr")
            ),
            concurrent_streams: commented(&d.concurrent_streams, |count| *count),
            connection_buffer: commented(&d.connection_buffer, |bytes| bytes.0),
            listener_buffer: Commented {
                value: d.connection_buffer.value.0 * 2,
                comment:
                    "2 x connection_buffer: a chunk that a filter made longer fits, or its origin would be stopped and \
                          started again"
                        .to_owned(),
            },
            upstream_connections: commented(&d.upstream_connections, |count| *count),
            header_kib: Commented { value: header_kib, comment: format!("limits.header_bytes {header}") },
            header_fields: REQUEST_FIELDS,
            inner_header_kib: with_room(header_kib),
            inner_header_fields: REQUEST_FIELDS + ROOM_FIELDS,
            response_header_kib: Commented {
                value: response_header_kib,
                comment: format!("the larger of limits.header_bytes {header} and the {most} KiB {whose}"),
            },
            response_header_fields: RESPONSE_FIELDS,
            inner_response_header_kib: with_room(response_header_kib),
            inner_response_header_fields: RESPONSE_FIELDS + ROOM_FIELDS,
            pipe_connect_timeout: Commented {
                value: envoy(Duration::from_secs(5) + link.rtt * 10 + link.queueing_delay()),
                comment: "5 s + 10 x RTT + the time in a full queue: a lost SYN is sent again after 1 s, 3 s and 7 s"
                    .to_owned(),
            },
            pipe_ping_interval: timer(&d.timers.ping),
            pipe_quic_idle: Commented {
                value: envoy(d.intervals.ping + d.user_timeout.value),
                comment: "a ping's interval and user_timeout".to_owned(),
            },
            pipe_ping_timeout: timer(&d.timers.ping_answer),
        }
    }
}

fn timer(timer: &Timer) -> Commented<String> {
    Commented { value: envoy(timer.time), comment: format!("{}: {}", timer.purpose, timer.formula) }
}

/// Returns the window of a connection from clients. At a remote, `connection_window` is that of the pipe.
fn client_window(settings: &Settings, d: &Derived) -> Commented<u64> {
    if settings.role.name() != RoleName::Remote {
        return commented(&d.connection_window, |bytes| http2_window(bytes.0));
    }
    let window = client_connection_window(d.stream_window.value).0.min(d.connection_window.value.0);
    Commented { value: http2_window(window), comment: "4 x stream_window: the connection of one client".to_owned() }
}

fn commented<T, U>(value: &Value<T>, envoy: impl Fn(&T) -> U) -> Commented<U> {
    Commented { value: envoy(&value.value), comment: value.comment() }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Formats a duration for Envoy's YAML, to the millisecond.
pub(super) fn envoy(time: Duration) -> String {
    match (time.as_secs(), time.subsec_millis()) {
        (seconds, 0) => format!("{seconds}s"),
        (seconds, millis) => format!("{seconds}.{millis:03}s"),
    }
}
