//! The connections or streams of a remote that are open before a client needs them (`split.warm`).

use std::time::Duration;

use longhaul_config::{Link, LinkClass, LinkModel, Price, Remote, WhenDown};

/// The number of connections that a browser opens for one page.
const OF_A_PAGE: u64 = 28;
/// The number that suffices for one page at any time.
const ENOUGH: u64 = 32;
/// The number of connections on a metered link, where each costs 2 KB an hour for TCP's probes.
const ENOUGH_METERED: u64 = 16;
/// The initial window of a connection: ten segments (RFC 6928).
const INITIAL_WINDOW_BYTES: u64 = 10 * 1460;
/// The longest time for which opening all of them may occupy the uplink, with those that the remote itself uses to hold the
/// others open.
const OPENING: Duration = Duration::from_secs(3);
/// The longest time for which the connections of one page may occupy the uplink. A crowd loads a page a second, and needs the
/// other half of the uplink for its requests and acknowledgements.
const OPENING_OF_A_PAGE: Duration = Duration::from_millis(500);

/// The connections or streams that are open in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Warm {
    /// The carrier of each client's bytes.
    pub carrier: Carrier,
    /// The number of them that are open and unused at any time.
    pub number: u32,
}

/// The carrier of the bytes of each client's connection over the link. The bytes are TLS, or DNS over TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// A TCP connection over the link with mutual TLS of its own. Each starts with a congestion window of its own.
    Connections,
    /// A stream of the pipe. All share its congestion window, and opening one takes a packet.
    Streams,
}

impl Warm {
    pub(super) fn of(remote: &Remote, link: &Link) -> Self {
        let carrier = Carrier::of(remote, link);
        Self { carrier, number: remote.warm.unwrap_or_else(|| carrier.worth_opening(link)) }
    }

    /// Returns the number of places in the rotation of one worker, if the carrier is streams. Each has a stream in use and an
    /// unused one.
    #[must_use]
    pub fn rotation(self, workers: u32) -> Option<u32> {
        (self.carrier == Carrier::Streams && self.number > 0).then(|| self.number.div_ceil(workers.max(1)))
    }
}

impl Carrier {
    /// Returns the carrier of this remote: the one that [loads pages sooner](Self::sooner) if grounds are the only way. With
    /// `when_down: direct`, Envoy must know which connections lead to a ground that is down. It does not know that of streams.
    /// (When requests move to another of several grounds, `longhaul run` replaces unused streams.)
    fn of(remote: &Remote, link: &Link) -> Self {
        if remote.when_down == WhenDown::Error { Self::sooner(link) } else { Self::Connections }
    }

    /// Returns the carrier that loads pages sooner on this link. Connections do where a window takes long to grow, because
    /// each brings an initial window. Where the initial windows of a page are more than the link holds, connections lose many
    /// packets. Streams do not, and their handshakes cost less. Where the uplink is slow, the handshakes of a crowd fill it,
    /// also on a link that is long enough for the windows.
    ///
    /// Fifteen users of a ship's link load pages over https, each on up to 36 connections (`make bench ONLY=neighbours
    /// ARGS=--part=users`). By streams the median page takes 0.74 of the direct time, and 4 packets are dropped for 100 direct
    /// ones. In another run, it took 1.24 by connections and 0.62 by streams, and the queues dropped 7886 and 33 packets.
    ///
    /// The price is a cold start, because one congestion window grows more slowly than many. Just after the boxes have started,
    /// a light page in Chromium takes 0.82 of the direct time on a first visit, and 0.69 on a second day. By connections it takes
    /// 0.73 and 0.53. Once the pipe has carried a page, a light client takes 4.3 s, and 5.3 s by connections.
    ///
    /// Load times through a pair over https, as parts of the direct ones (light and heavy page, medians of 3 to 11 loads).
    /// They were measured while a key of the file chose the carrier, so no command of this version repeats them:
    ///
    /// | link | connections | streams |
    /// |---|---|---|
    /// | geostationary | 0.47, 0.36 | 0.49, 0.39 |
    /// | ship's link | 0.51, 0.80 | 0.53, 0.82 |
    /// | rural LTE | 0.74, 1.05 | 0.67, 0.98 |
    /// | low orbit | 0.75, 0.70 | 0.77, 0.72 |
    /// | UMTS, light page | 0.92 | 0.87 |
    fn sooner(link: &Link) -> Self {
        let overflows = link.down.bytes_in(link.rtt) < OF_A_PAGE * INITIAL_WINDOW_BYTES;
        let grows_soon = LinkModel::of(link).class != LinkClass::LongRoundTrips;
        let crowds_the_uplink = link.up.time_for(OF_A_PAGE * Self::Connections.opening_bytes()) > OPENING_OF_A_PAGE;
        if crowds_the_uplink || overflows && grows_soon { Self::Streams } else { Self::Connections }
    }

    /// Returns the number that is worth opening: [`ENOUGH`], or fewer on a slow uplink. Returns 0 if opening one takes longer
    /// than the round trip that it saves.
    fn worth_opening(self, link: &Link) -> u32 {
        if link.up.time_for(self.opening_bytes()) > link.rtt {
            return 0;
        }
        let affordable = link.up.bytes_in(OPENING) / self.opening_bytes() * self.unused_by_one() / self.opened_by_one();
        let probes = link.price == Price::Metered && self == Self::Connections;
        let enough = if probes { ENOUGH_METERED } else { ENOUGH };
        u32::try_from(affordable.clamp(2, enough)).unwrap_or(0)
    }

    /// Returns the bytes on the uplink to open one: a handshake with two certificates and its acknowledgements, or the
    /// headers of a stream in a packet, and the acknowledgement of the response.
    #[must_use]
    pub const fn opening_bytes(self) -> u64 {
        match self {
            Self::Connections => 4 << 10,
            Self::Streams => 256,
        }
    }

    /// Returns the number of them over the link for each one that is held: itself, and those that are unused
    /// (`per_upstream_preconnect_ratio`).
    #[must_use]
    pub const fn opened_by_one(self) -> u64 {
        match self {
            Self::Connections => 3,
            Self::Streams => 2,
        }
    }

    /// Returns the number of unused ones for each one that is held.
    #[must_use]
    pub const fn unused_by_one(self) -> u64 {
        self.opened_by_one() - 1
    }
}

#[cfg(test)]
mod tests {
    use longhaul_config::Rate;

    use super::*;

    fn link(rtt_ms: u64, down: u64, up: u64, price: Price) -> Link {
        let rate = |bits_per_second| Rate { bits_per_second };
        Link { price, ..Link::of(Duration::from_millis(rtt_ms), rate(down), rate(up)) }
    }

    #[test]
    fn connections_carry_clients_where_the_link_holds_their_windows_and_streams_elsewhere() {
        for (rtt_ms, down, up, carrier, warm) in [
            (600, 20_000_000, 5_000_000, Carrier::Connections, 32),
            (700, 2_000_000, 500_000, Carrier::Streams, 32),
            // Windows take long to grow here, but the handshakes of a crowd fill the uplink.
            (600, 20_000_000, 1_500_000, Carrier::Streams, 32),
            (600, 20_000_000, 2_000_000, Carrier::Connections, 32),
            (80, 8_000_000, 2_000_000, Carrier::Streams, 32),
            (40, 100_000_000, 10_000_000, Carrier::Connections, 32),
            (40, 50_000_000, 10_000_000, Carrier::Streams, 32),
            (300, 384_000, 64_000, Carrier::Streams, 32),
            (400, 78_000, 40_000, Carrier::Streams, 29),
            // A stream takes as long as the round trip that it saves.
            (400, 9_600, 2_400, Carrier::Streams, 0),
        ] {
            let link = link(rtt_ms, down, up, Price::Free);
            assert_eq!((Carrier::sooner(&link), carrier.worth_opening(&link)), (carrier, warm), "{link:?}");
        }
    }

    #[test]
    fn a_metered_link_has_fewer_connections_and_as_many_streams() {
        let link = link(600, 20_000_000, 5_000_000, Price::Metered);
        assert_eq!(Carrier::Connections.worth_opening(&link), 16);
        assert_eq!(Carrier::Streams.worth_opening(&link), 32);
    }
}
