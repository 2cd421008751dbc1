//! Bounds that follow from the link's rates and round-trip time: the whole policy on one screen.

use crate::config::Config;
use std::time::Duration;

/// The link: its round-trip time in milliseconds and its rates in bytes a second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    rtt_ms: u64,
    down: u64,
    up: u64,
}

/// Uplink bytes of a slot: a compressed header list, its frame and its share of a TLS record.
const SLOT_BYTES: u64 = 80;
/// Uplink time that the first slots of a flight may take, in milliseconds.
const SLOTS_MS: u64 = 40;
/// Downlink time that a flight may fill beside its four round trips, in milliseconds.
const FILL_MS: u64 = 2000;
/// Bytes of a flight at most, on any link.
const MOST_BUDGET: u64 = 8 << 20;

impl Link {
    pub(crate) fn new(config: &Config) -> Self {
        Self { rtt_ms: config.rtt_ms, down: config.down, up: config.up }
    }

    /// Returns the number of slots that a flight starts with, 4 to 32. Streams of HTTP/2 are a bound beside the uplink.
    /// The ground allows 128 on a connection, and a page's own requests need some of them.
    pub(crate) fn slots(self) -> usize {
        usize::try_from((self.up * SLOTS_MS / 1000 / SLOT_BYTES).clamp(4, 32)).unwrap_or(4)
    }

    /// Returns the bytes that one flight may send: as many as the link carries in four round trips and two seconds, at
    /// most 8 MiB.
    pub(crate) fn budget(self) -> u64 {
        (self.down.saturating_mul(4 * self.rtt_ms + FILL_MS) / 1000).min(MOST_BUDGET)
    }

    /// Returns the time for which a browser's request is held at most, in milliseconds. The first byte of an object may
    /// arrive a round trip after the request for the page. The last byte may take the time of the whole budget.
    pub(crate) fn hold_ms(self) -> u64 {
        let fill = self.budget().saturating_mul(1000) / self.down.max(1);
        2 * self.rtt_ms + fill + 500
    }

    /// Returns the age in milliseconds up to which the remote serves any object, even one that no cache may keep. An
    /// object that is so young counts as fetched for the request.
    pub(crate) fn moment_ms(self) -> u64 {
        (4 * self.rtt_ms).max(1000)
    }

    /// Returns by how much the objects of a parcel are older than their arrival says, beyond one round trip, in milliseconds.
    /// The parcel came `after_ms` after its slot was sent, and the ground held the slot for `held_ms` of them. The rest is
    /// time on the link, an outage for example (RFC 9111, 4.2.3, `response_delay`). The round trip is part of
    /// [`Link::moment_ms`]. A ground of an earlier version does not say how long it held the slot.
    pub(crate) fn late_ms(self, after_ms: u64, held_ms: Option<i64>) -> u64 {
        let Some(held_ms) = held_ms else { return 0 };
        after_ms.saturating_add_signed(held_ms.saturating_neg()).saturating_sub(self.rtt_ms)
    }

    /// Returns the time in milliseconds that an origin has for an object. After it, the browser had better request the
    /// object itself.
    pub(crate) fn fetch_timeout_ms(self) -> u64 {
        self.rtt_ms + 1000
    }

    /// Returns the timeout of a slot or report in milliseconds.
    pub(crate) fn slot_timeout_ms(self) -> u64 {
        crate::limits::FLIGHT_MS + 2 * self.rtt_ms
    }

    /// Returns the bytes that may leave in `elapsed_ms`. That is a little more than the link carries, so that the link
    /// never idles for lack of bytes. It is so little that urgent bytes do not wait behind others.
    pub(crate) fn pace(self, elapsed_ms: u64) -> i64 {
        i64::try_from(self.down.saturating_mul(elapsed_ms) / 1000 * 5 / 4).unwrap_or(i64::MAX)
    }

    /// Returns the bytes that may leave at once after a pause.
    pub(crate) fn burst(self) -> i64 {
        self.pace(20).max(32 << 10)
    }
}

/// The time to the next tick while the ground has objects to send, or the remote holds requests or has slots to send.
pub(crate) const BUSY_TICK: Duration = Duration::from_millis(5);
/// The time to the next tick if there is work now. A tick runs in a context that outlives the stream.
pub(crate) const NEXT_TICK: Duration = Duration::from_millis(1);
/// The time to the next tick while there are only deadlines.
pub(crate) const IDLE_TICK: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Role;

    fn link(rtt_ms: u64, down: u64, up: u64) -> Link {
        let config = Config {
            role: Role::Ground,
            cluster: "c".into(),
            rtt_ms,
            down,
            up,
            store_bytes: 0,
            buffer_bytes: 0,
            flights: true,
            deltas: false,
            caches: false,
            cache_name: None,
            names: None,
        };
        Link::new(&config)
    }

    #[test]
    fn a_fast_link_gets_much_and_a_slow_one_little() {
        let geo = link(600, 2_500_000, 625_000);
        assert_eq!((geo.slots(), geo.budget()), (32, 8 << 20));
        let cell = link(400, 9_750, 5_000);
        assert_eq!((cell.slots(), cell.budget()), (4, 35_100));
        assert!(cell.hold_ms() < 6_000, "{}", cell.hold_ms());
    }

    #[test]
    fn a_parcel_is_late_by_its_time_on_the_link() {
        let link = link(600, 2_500_000, 625_000);
        for (after_ms, held_ms, expected) in [
            (700, Some(100), 0),
            (30_000, Some(29_000), 400),
            (20_000, Some(100), 19_300),
            (1000, Some(-5000), 5400),
            (20_000, None, 0),
            (5, Some(i64::MAX), 0),
            (5, Some(i64::MIN), i64::MAX as u64 + 5 - 600),
        ] {
            assert_eq!(link.late_ms(after_ms, held_ms), expected, "{after_ms} {held_ms:?}");
        }
    }

    #[test]
    fn numbers_beyond_reason_overflow_nothing() {
        let link = link(60_000, u64::MAX, u64::MAX / 100);
        assert_eq!(link.budget(), 8 << 20);
        let _ = (link.slots(), link.hold_ms(), link.pace(u64::MAX), link.burst());
    }
}
