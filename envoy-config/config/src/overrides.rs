//! `transport:` of the configuration file: values that the operator sets in place of derived ones.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::units::Bytes;

/// The operator's own values, by key. Each value has been checked for its kind and range.
pub(crate) type Overrides = BTreeMap<TransportKey, Override>;

/// One overridden value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// Its line in the configuration file, from 1.
    pub line: usize,
    /// The value.
    pub value: OverrideValue,
}

/// A value of the kind that its key requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverrideValue {
    /// A value of a [`ValueKind::Bytes`] key.
    Bytes(Bytes),
    /// A value of a [`ValueKind::Duration`] key.
    Duration(Duration),
    /// A value of a [`ValueKind::Count`] key.
    Count(u32),
    /// A value of a [`ValueKind::Name`] key.
    Name(String),
    /// `off`, if the key allows it.
    Off,
    /// A value of a [`ValueKind::Switch`] key.
    Switch(bool),
}

/// The kind of value that a key accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    /// A size such as `64kib`, in this range.
    Bytes {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A time such as `15m`, in this range of milliseconds.
    Duration {
        /// Smallest, in milliseconds.
        min_ms: u64,
        /// Largest, in milliseconds.
        max_ms: u64,
    },
    /// A whole number in this range.
    Count {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
        /// True if `off` is allowed too.
        off: bool,
    },
    /// A word of at most 15 letters, digits and `_` (the kernel's `TCP_CA_NAME_MAX`). `host` keeps the setting of the
    /// machine.
    Name,
    /// `on` or `off`.
    Switch,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const DAY_MS: u64 = 86_400_000;

macro_rules! transport_keys {
    ($($variant:ident $name:literal $kind:expr, $purpose:literal;)*) => {
        /// Every derived value that the operator can set, in the order in which `longhaul check` prints them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum TransportKey { $(#[doc = concat!("`transport.", $name, "`")] $variant),* }

        impl TransportKey {
            /// All keys.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the key under `transport:`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Returns the kind of its value.
            pub(crate) const fn kind(self) -> ValueKind {
                match self { $(Self::$variant => $kind),* }
            }

            /// Returns the purpose of the value in a few words.
            pub const fn purpose(self) -> &'static str {
                match self { $(Self::$variant => $purpose),* }
            }
        }
    };
}

transport_keys! {
    BdpDown "bdp_down" ValueKind::Bytes { min: 1, max: 4 * GIB }, "bandwidth-delay product: bytes in flight that fill the link toward clients";
    BdpUp "bdp_up" ValueKind::Bytes { min: 1, max: 4 * GIB }, "bandwidth-delay product: bytes in flight that fill the link from clients";
    CongestionControl "congestion_control" ValueKind::Name, "congestion control of connections to clients";
    InitialWindow "initial_window" ValueKind::Count { min: 1, max: 4096, off: false }, "segments sent before the first acknowledgement (client route: initcwnd, initrwnd)";
    WindowClamp "window_clamp" ValueKind::Count { min: 2, max: 65_535, off: true }, "the most segments that a connection may have in flight (client route: cwnd lock)";
    SendBufferMax "send_buffer_max" ValueKind::Bytes { min: 4 * KIB, max: GIB }, "the largest size of a socket's buffer (sysctl net.ipv4.tcp_wmem)";
    ReceiveBufferMax "receive_buffer_max" ValueKind::Bytes { min: 4 * KIB, max: GIB }, "the largest size of a socket's buffer (sysctl net.ipv4.tcp_rmem)";
    NotsentLowat "notsent_lowat" ValueKind::Bytes { min: 4 * KIB, max: 16 * MIB }, "unsent bytes that the kernel buffers (TCP_NOTSENT_LOWAT)";
    UserTimeout "user_timeout" ValueKind::Duration { min_ms: 1_000, max_ms: DAY_MS }, "time without an acknowledgement after which a connection over the link ends (TCP_USER_TIMEOUT). Unless the file sets this key, it is client_idle_timeout for clients of an edge: a paused player acknowledges, and takes nothing. On a free link of a pair it is at least the time of three lost probes";
    KeepaliveIdle "keepalive_idle" ValueKind::Duration { min_ms: 1_000, max_ms: DAY_MS }, "idle time before a client's connection is probed";
    KeepaliveInterval "keepalive_interval" ValueKind::Duration { min_ms: 1_000, max_ms: DAY_MS }, "time between two probes";
    KeepaliveProbes "keepalive_probes" ValueKind::Count { min: 1, max: 100, off: false }, "unacknowledged probes before the connection ends";
    ClientIdleTimeout "client_idle_timeout" ValueKind::Duration { min_ms: 1_000, max_ms: DAY_MS }, "idle time after which a client's connection is closed";
    UpstreamIdleTimeout "upstream_idle_timeout" ValueKind::Duration { min_ms: 1_000, max_ms: DAY_MS }, "idle time after which a connection to an origin is closed";
    StreamIdleTimeout "stream_idle_timeout" ValueKind::Duration { min_ms: 1_000, max_ms: DAY_MS }, "time without progress after which a request ends";
    HandshakeTimeout "handshake_timeout" ValueKind::Duration { min_ms: 1_000, max_ms: 600_000 }, "time for a client's first bytes, TLS handshake and request headers";
    DrainTime "drain_time" ValueKind::Duration { min_ms: 1_000, max_ms: DAY_MS }, "time that old connections have to end after a change";
    StreamWindow "stream_window" ValueKind::Bytes { min: 65_535, max: (1 << 31) - 1 }, "HTTP/2 and 3: bytes a client may send ahead on one request";
    ConnectionWindow "connection_window" ValueKind::Bytes { min: 65_535, max: (1 << 31) - 1 }, "HTTP/2 and 3: bytes a client may send ahead on one connection";
    ConcurrentStreams "concurrent_streams" ValueKind::Count { min: 1, max: 1000, off: false }, "HTTP/2 and 3: concurrent requests on one connection";
    Http3 "http3" ValueKind::Switch, "HTTP/3 (QUIC on the UDP port of `listen.tls`) for names whose TLS ends here";
    ConnectionBuffer "connection_buffer" ValueKind::Bytes { min: 4 * KIB, max: 16 * MIB }, "bytes that Envoy buffers for one connection, and the largest chunk that a filter sees";
    UpstreamConnections "upstream_connections" ValueKind::Count { min: 1, max: 10_000, off: false }, "concurrent connections to one origin";
    Shards "shards" ValueKind::Count { min: 1, max: 16, off: false }, "names or addresses that moved objects are spread over";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_name_stands_twice() {
        let names: BTreeSet<&str> = TransportKey::ALL.iter().map(|key| key.name()).collect();
        assert_eq!(names.len(), TransportKey::ALL.len());
    }
}
