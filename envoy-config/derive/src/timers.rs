//! The timers of Envoy, by the kind of traffic whose time they bound. Each timer stands once, here.
//!
//! A timer of one kind must never end another one: a browser's request, a chat that is silent for minutes, and a mail
//! server that speaks first wait for different things.

use std::time::Duration;

use longhaul_config::{Bytes, Link, Settings, show_duration};

/// A kind of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Traffic {
    /// A request of http, and the start of its response.
    Request,
    /// A response that goes on while it is silent: events, long polls, paused videos.
    StreamingResponse,
    /// A connection after an upgrade, such as a WebSocket.
    Upgrade,
    /// TLS and other protocols that are passed on unread.
    Tunnel,
    /// A connection whose client is silent, because the server speaks first or because it was opened in advance.
    ServerFirst,
    /// A query for the address of a name.
    Lookup,
    /// The connections between the two ends of a pair.
    Pipe,
}

impl Traffic {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::StreamingResponse => "streaming response",
            Self::Upgrade => "upgrade",
            Self::Tunnel => "tunnel",
            Self::ServerFirst => "server speaks first",
            Self::Lookup => "lookup",
            Self::Pipe => "pipe",
        }
    }
}

/// A timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timer {
    /// The kinds of traffic that it bounds.
    pub(crate) traffic: &'static [Traffic],
    /// The event that starts it, and the consequence of its end.
    pub purpose: &'static str,
    /// The time.
    pub time: Duration,
    /// The formula of the time, or the name of the value that it is.
    pub formula: String,
}

/// The timers. Those that the operator can set are named after the key under `transport:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timers {
    /// The time for the header of a request.
    pub request_headers: Timer,
    /// The time that the last bytes of a connection of http have.
    pub early_end: Timer,
    /// The time for a TCP connection to an origin.
    pub origin_connect: Timer,
    /// The silence of a request or response.
    pub stream_idle: Timer,
    /// The silence of a connection that is passed on unread.
    pub tunnel_idle: Timer,
    /// The time between the last byte and the end, for what is passed on over a stream of the pipe.
    pub pipe_end: Timer,
    /// The time after which a silent client of `listen.tls` is passed on.
    pub silent_tls: Timer,
    /// The time after which a silent client of `listen.http` is passed on.
    pub silent_http: Timer,
    /// The time for a response of the resolver.
    pub lookup: Timer,
    /// The time between two pings on the pipe.
    pub ping: Timer,
    /// The time for the response to a ping.
    pub ping_answer: Timer,
    /// The time for a new connection of a pipe.
    pub pipe_connect: Timer,
    /// The silence of a QUIC connection of a pipe.
    pub pipe_quic_idle: Timer,
    /// The time for each step of `longhaul pair check`.
    pub pair_check: Timer,
}

/// The values that timers follow from.
pub(super) struct From<'a> {
    pub(super) settings: &'a Settings,
    pub(super) client_idle: Duration,
    pub(super) stream_idle: Duration,
    pub(super) handshake: Duration,
    pub(super) user_timeout: Duration,
    pub(super) stream_window: Bytes,
    pub(super) ping: Duration,
    pub(super) ping_reason: &'static str,
}

impl Timer {
    /// Returns the time for each step of `longhaul pair check`.
    #[must_use]
    pub fn pair_check(link: &Link) -> Self {
        Self {
            traffic: &[Traffic::Pipe],
            purpose: "a step of `longhaul pair check` has no response: the step failed",
            time: Duration::from_secs(5) + link.rtt * 4,
            formula: "5 s + 4 x RTT: a handshake takes a few round trips, and the link's queue may be full".to_owned(),
        }
    }
}

impl Timers {
    pub(super) fn of(from: &From<'_>) -> Self {
        let link = &from.settings.slowest_link();
        let header = from.settings.limits.header;
        let near = from.settings.role.stands_beside_clients();
        Self {
            request_headers: Timer {
                traffic: &[Traffic::Request],
                purpose: "the header of a request is not complete: 408",
                time: from.handshake + link.up.time_for(header.0),
                formula: format!("handshake_timeout + limits.header_bytes {header} at {}", link.up),
            },
            early_end: early_end(near, link.rtt),
            origin_connect: Timer {
                traffic: &[Traffic::Request, Traffic::Tunnel],
                purpose: "an origin does not accept a connection: the next attempt, then 503 or the end",
                time: Duration::from_secs(5),
                formula: "a lost SYN is sent again after 1 s and 3 s".to_owned(),
            },
            stream_idle: Timer {
                traffic: &[Traffic::Request, Traffic::StreamingResponse, Traffic::Upgrade],
                purpose: "no byte in either direction: 504, or the end of the response or upgrade",
                time: from.stream_idle,
                formula: "stream_idle_timeout".to_owned(),
            },
            tunnel_idle: Timer {
                traffic: &[Traffic::Tunnel, Traffic::Lookup],
                purpose: "no byte in either direction: the end",
                time: from.client_idle,
                formula: "client_idle_timeout".to_owned(),
            },
            pipe_end: pipe_end(from),
            silent_tls: silent_tls(near, link.rtt),
            silent_http: Timer {
                traffic: &[Traffic::ServerFirst],
                purpose: "a client of port 80 is silent: a connection to the address that it dialled",
                time: Duration::from_secs(4),
                formula: "browsers use most connections that they open in advance sooner".to_owned(),
            },
            lookup: Timer {
                traffic: &[Traffic::Lookup],
                purpose: "the resolver does not respond: 502 or the end",
                time: Duration::from_secs(5),
                formula: "two attempts of 2 s, and 1 s".to_owned(),
            },
            ping: Timer {
                traffic: &[Traffic::Pipe],
                purpose: "the pipe is asked whether it is alive",
                time: from.ping,
                formula: from.ping_reason.to_owned(),
            },
            ping_answer: Timer {
                traffic: &[Traffic::Pipe],
                purpose: "a ping has no response: the end of the pipe",
                time: from.user_timeout,
                formula: "user_timeout".to_owned(),
            },
            pipe_connect: Timer {
                traffic: &[Traffic::Pipe],
                purpose: "the other end does not accept a connection: the next attempt",
                time: Duration::from_secs(5) + link.rtt * 10 + link.queueing_delay(),
                formula: "5 s + 10 x RTT + the time in a full queue: a lost SYN is sent again after 1 s, 3 s and 7 s"
                    .to_owned(),
            },
            pipe_quic_idle: Timer {
                traffic: &[Traffic::Pipe],
                purpose: "no packet on a pipe over QUIC: the end of the pipe",
                time: from.ping + from.user_timeout,
                formula: "a ping's interval and user_timeout".to_owned(),
            },
            pair_check: Timer::pair_check(link),
        }
    }

    /// Returns all timers, those of one kind of traffic together, with their kind.
    #[must_use]
    pub(crate) fn by_traffic(&self) -> Vec<(Traffic, &Timer)> {
        let all = [
            &self.request_headers,
            &self.early_end,
            &self.origin_connect,
            &self.stream_idle,
            &self.tunnel_idle,
            &self.pipe_end,
            &self.silent_tls,
            &self.silent_http,
            &self.lookup,
            &self.ping,
            &self.ping_answer,
            &self.pipe_connect,
            &self.pipe_quic_idle,
            &self.pair_check,
        ];
        let mut rows: Vec<_> =
            all.iter().flat_map(|timer| timer.traffic.iter().map(move |kind| (*kind, *timer))).collect();
        rows.sort_by_key(|(kind, _)| *kind);
        rows
    }
}

/// Envoy closes a connection this long after a response that came before the whole request. A close at once would be a
/// reset, and take the response from a client that still sends. Envoy closes an upgrade in the same way.
fn early_end(near: bool, rtt: Duration) -> Timer {
    let (time, formula) = if near {
        (Duration::from_millis(500), "500 ms: the clients are near".to_owned())
    } else {
        (Duration::from_millis(500) + rtt * 2, format!("500 ms + 2 x RTT {}: the response arrives", show_duration(rtt)))
    };
    Timer {
        traffic: &[Traffic::Request, Traffic::Upgrade],
        purpose: "the response came before the end of the request, or an upgrade is over: the end",
        time,
        formula,
    }
}

/// A TLS client sends its first bytes with the last packet of the TCP handshake. They may be lost once.
fn silent_tls(near: bool, rtt: Duration) -> Timer {
    let (time, formula) = if near {
        (
            Duration::from_millis(350),
            "350 ms: the clients are near, and send a lost packet again after 200 ms".to_owned(),
        )
    } else {
        let formula = format!("800 ms + 4 x RTT {}: a lost first packet comes again", show_duration(rtt));
        (Duration::from_millis(800) + rtt * 4, formula)
    };
    Timer {
        traffic: &[Traffic::ServerFirst],
        purpose: "a client of port 443 is silent: a connection to the address that it dialled",
        time,
        formula,
    }
}

/// Until then the bytes that wait at this end have crossed the link.
fn pipe_end(from: &From<'_>) -> Timer {
    /// The connections that share the link meanwhile.
    const NEIGHBOURS: u64 = 6;
    /// The buffer of the hop within this process, in bytes.
    const HOPS: u64 = 64 << 10;
    const MOST: Duration = Duration::from_mins(5);
    let link = &from.settings.slowest_link();
    let time = Duration::from_secs(1) + link.rtt * 4 + link.down.time_for((from.stream_window.0 + HOPS) * NEIGHBOURS);
    Timer {
        traffic: &[Traffic::Tunnel],
        purpose: "the server has ended what a stream of the pipe carries: the end of the stream",
        time: time.min(MOST),
        formula: format!(
            "1 s + 4 x RTT + 6 connections x (stream_window {} + 64kib) at {}, at most 5 min",
            from.stream_window, link.down
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use longhaul_config::load_text;

    use super::*;
    use crate::{Derived, HostFacts, derive};

    fn of(rtt: &str, more: &str) -> Derived {
        let yaml = format!(
            "role: edge\nlink: {{ rtt: {rtt}, down: 2mbit, up: 500kbit }}\nproxy: {{ addresses: [192.0.2.1] }}\n\
             listen: {{ http: '192.0.2.1:80', tls: '192.0.2.1:443', dns: off }}\nupstream: {{ resolvers: [192.0.2.53] }}\n{more}"
        );
        let loaded = load_text(Path::new("longhaul.yaml"), yaml).unwrap_or_else(|error| panic!("{error}"));
        derive(&loaded.settings, &HostFacts::of_this_machine())
    }

    #[test]
    fn nothing_that_is_silent_ends_before_an_idle_connection() {
        for rtt in ["5ms", "80ms", "600ms", "2s"] {
            let derived = of(rtt, "");
            assert!(derived.timers.stream_idle.time >= derived.timers.tunnel_idle.time, "{rtt}");
            assert!(derived.timers.silent_tls.time < derived.timers.request_headers.time, "{rtt}");
        }
    }

    #[test]
    fn each_timer_has_the_value_that_the_operator_gave_and_every_kind_has_one() {
        let derived =
            of("600ms", "transport: { client_idle_timeout: 20m, stream_idle_timeout: 7s, handshake_timeout: 9s }\n");
        let timers = &derived.timers;
        let seconds = [timers.tunnel_idle.time, timers.stream_idle.time].map(|time| time.as_secs());
        assert_eq!(seconds, [1200, 7]);
        assert!(timers.request_headers.time >= Duration::from_secs(9));
        let kinds: std::collections::BTreeSet<_> = timers.by_traffic().iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds.len(), 7);
    }
}
