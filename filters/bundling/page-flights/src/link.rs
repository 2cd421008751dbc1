//! What follows from the link's numbers: one screen of policy.

use crate::config::Config;
use std::time::Duration;

/// The link, in the units used here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    rtt_ms: u64,
    down: u64,
    up: u64,
}

/// What a slot costs the way up: a packed header list, its frame and its share of a record.
const SLOT_BYTES: u64 = 80;
/// Opening a flight may keep the way up busy this long.
const SLOTS_MS: u64 = 40;
/// How long a flight may fill the way down, beyond its round trips.
const FILL_MS: u64 = 2000;
/// However fast the link, more is not sent unasked.
const MOST_BUDGET: u64 = 8 << 20;

impl Link {
    pub(crate) fn new(config: &Config) -> Self {
        Self { rtt_ms: config.rtt_ms, down: config.down, up: config.up }
    }

    /// Slots a flight starts with. HTTP/2 streams are counted, too: the ground allows 128 on a connection, and a page's own
    /// requests need theirs.
    pub(crate) fn slots(self) -> usize {
        usize::try_from((self.up * SLOTS_MS / 1000 / SLOT_BYTES).clamp(4, 32)).unwrap_or(4)
    }

    /// Bytes one flight may send: what the link carries in four round trips and two seconds.
    pub(crate) fn budget(self) -> u64 {
        (self.down.saturating_mul(4 * self.rtt_ms + FILL_MS) / 1000).min(MOST_BUDGET)
    }

    /// How long a browser's request is held for an object that is on its way: its first byte may take a round trip from
    /// the request for the page, and the last the time that the whole budget takes.
    pub(crate) fn hold_ms(self) -> u64 {
        let fill = self.budget().saturating_mul(1000) / self.down.max(1);
        2 * self.rtt_ms + fill + 500
    }

    /// How long an object may be given to a browser, from when it came, if it may not be kept: as good as fetched for it.
    pub(crate) fn moment_ms(self) -> u64 {
        (4 * self.rtt_ms).max(1000)
    }

    /// How long an origin may take for an object before its browser is better told to ask itself.
    pub(crate) fn fetch_timeout_ms(self) -> u64 {
        self.rtt_ms + 1000
    }

    /// How long a slot may wait.
    pub(crate) fn slot_timeout_ms(self) -> u64 {
        crate::limits::FLIGHT_MS + 2 * self.rtt_ms
    }

    /// Bytes that may leave in `elapsed_ms`: a little more than the link carries, so that it is never idle for want of
    /// them, and so little that what is urgent does not wait behind what is not.
    pub(crate) fn pace(self, elapsed_ms: u64) -> i64 {
        i64::try_from(self.down.saturating_mul(elapsed_ms) / 1000 * 5 / 4).unwrap_or(i64::MAX)
    }

    /// Bytes that may leave at once after a pause.
    pub(crate) fn burst(self) -> i64 {
        self.pace(20).max(32 << 10)
    }
}

/// While bytes wait for their time at the far end, or a request for its object at the near end.
pub(crate) const BUSY_TICK: Duration = Duration::from_millis(5);
/// As soon as the proxy can, from a context that outlives the stream.
pub(crate) const NEXT_TICK: Duration = Duration::from_millis(1);
/// While there is nothing but deadlines.
pub(crate) const IDLE_TICK: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Role;

    fn link(rtt_ms: u64, down: u64, up: u64) -> Link {
        let config =
            Config { role: Role::Ground, cluster: "c".into(), rtt_ms, down, up, store_bytes: 0, buffer_bytes: 0 };
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
    fn numbers_beyond_reason_overflow_nothing() {
        let link = link(60_000, u64::MAX, u64::MAX / 100);
        assert_eq!(link.budget(), 8 << 20);
        let _ = (link.slots(), link.hold_ms(), link.pace(u64::MAX), link.burst());
    }
}
