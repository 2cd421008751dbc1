//! Transport values in Envoy's notation. Each has a comment about its origin.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use longhaul_derive::{CongestionControl, Derived, MultipathUse, Origin, Reasoned, Timer, Value};
use minijinja::context;
use serde::Serialize;

/// A value and the comment beside it.
#[derive(Debug, Serialize)]
pub(super) struct Commented<T> {
    pub(super) value: T,
    pub(super) comment: String,
}

impl<T: Serialize> From<Commented<T>> for minijinja::Value {
    fn from(commented: Commented<T>) -> Self {
        Self::from(minijinja::value::Serde(commented))
    }
}

/// Returns the transport values for templates. Durations are in Envoy's notation (`1.5s`), and sizes are in bytes.
pub(super) fn transport(d: &Derived) -> minijinja::Value {
    let bounds = &d.bounds;
    context! {
        // The kernel's name of the congestion control, in base64, as the value of a socket option. None: the host's
        // default.
        congestion_control => match &d.congestion_control.value {
            CongestionControl::HostDefault => None,
            CongestionControl::Named(name) => Some(Commented {
                value: BASE64_STANDARD.encode(name),
                comment: format!("{name}: {}", d.congestion_control.comment()),
            }),
        },
        // The segment size of connections over the link, and the packet size of QUIC on the pipe. None: the kernel finds them.
        segment => d.packets.as_ref().map(|packets| bound(&packets.segment)),
        quic_packet => d.packets.as_ref().map(|packets| bound(&packets.datagram)),
        // The bound of the retransmission timer. None: the kernel cannot bound it.
        rto_max_ms => d
            .retransmission
            .as_ref()
            .map(|bound| Commented { value: millis(bound.value), comment: bound.reason.clone() }),
        // The reason why the pipe's listener takes Multipath TCP, and why connections to a ground use it. None: they do not.
        accepts_multipath => if let MultipathUse::Accepts(why) = d.multipath { Some(why) } else { None },
        opens_multipath => if let MultipathUse::Opens(why) = d.multipath { Some(why) } else { None },
        notsent_lowat => commented(&d.notsent_lowat, |bytes| bytes.0),
        client_timeout_ms => Commented {
            value: millis(d.client_timeout.value),
            comment: d.client_timeout.reason.clone(),
        },
        link_timeout_ms => Commented { value: millis(d.link_timeout.value), comment: d.link_timeout.reason.clone() },
        keepalive_idle_s => commented(&d.keepalive_idle, |time| time.as_secs().max(1)),
        keepalive_interval_s => commented(&d.keepalive_interval, |time| time.as_secs().max(1)),
        keepalive_probes => commented(&d.keepalive_probes, |count| *count),
        client_idle_timeout => commented(&d.client_idle_timeout, |time| envoy(*time)),
        upstream_idle_timeout => commented(&d.upstream_idle_timeout, |time| envoy(*time)),
        stream_idle_timeout => commented(&d.stream_idle_timeout, |time| envoy(*time)),
        handshake_timeout => commented(&d.handshake_timeout, |time| envoy(*time)),
        request_headers_timeout => timer(&d.timers.request_headers),
        delayed_close_timeout => timer(&d.timers.early_end),
        pipe_end_delay => timer(&d.timers.pipe_end),
        silent_tls => timer(&d.timers.silent_tls),
        silent_http => timer(&d.timers.silent_http),
        origin_connect => timer(&d.timers.origin_connect),
        lookup => timer(&d.timers.lookup),
        stream_window => bound(&bounds.stream_window),
        connection_window => bound(&bounds.connection_window),
        client_connection_window => bound(&bounds.client_window),
        quic_stream_window => bound(&bounds.quic_stream_window),
        quic_connection_window => bound(&bounds.quic_connection_window),
        // True if QUIC uses BBR. It does, unless the operator chose another congestion control for TCP.
        quic_bbr => !matches!(
            (&d.congestion_control.value, d.congestion_control.origin),
            (CongestionControl::Named(name), Origin::Overridden { .. }) if !name.starts_with("bbr")
        ),
        concurrent_streams => commented(&d.concurrent_streams, |count| *count),
        connection_buffer => commented(&d.connection_buffer, |bytes| bytes.0),
        listener_buffer => bound(&bounds.listener_buffer),
        unread_buffer => bound(&bounds.unread_buffer),
        pipe_buffer => bound(&bounds.pipe_buffer),
        upstream_connections => commented(&d.upstream_connections, |count| *count),
        // The most that a request of a client has: KiB of header, and fields.
        header_kib => bound(&bounds.request.kib),
        header_fields => bounds.request.fields,
        // The most that a request has between the hops, which add fields of their own.
        inner_header_kib => bounds.inner_request.kib.value,
        inner_header_fields => bounds.inner_request.fields,
        // The most that a response of an origin has.
        response_header_kib => bound(&bounds.response.kib),
        response_header_fields => bounds.response.fields,
        // The most that a response has between the hops.
        inner_response_header_kib => bounds.inner_response.kib.value,
        inner_response_header_fields => bounds.inner_response.fields,
        pipe_connect_timeout => reason_of(&d.timers.pipe_connect),
        pipe_ping_interval => timer(&d.timers.ping),
        pipe_quic_idle => reason_of(&d.timers.pipe_quic_idle),
        pipe_ping_timeout => timer(&d.timers.ping_answer),
    }
}

fn timer(timer: &Timer) -> Commented<String> {
    Commented { value: envoy(timer.time), comment: format!("{}: {}", timer.purpose, timer.formula) }
}

/// Returns the time of a timer whose name says its purpose.
fn reason_of(timer: &Timer) -> Commented<String> {
    Commented { value: envoy(timer.time), comment: timer.formula.clone() }
}

fn bound<T: Copy>(bound: &Reasoned<T>) -> Commented<T> {
    Commented { value: bound.value, comment: bound.reason.clone() }
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
