//! Tells from the kernel's figures of a pair's connections that large packets vanish on the way to the other end.
//!
//! A router that drops them silently, as before a tunnel or a modem, lets small ones pass. So a connection stands
//! still with a full segment, which it sends again and again, while the other end acknowledges others.
//!
//! An outage loses all segments. So a lost one counts only between two others that were acknowledged at once and that left
//! within a short time of each other: the link carried packets just before and just after it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use super::kernel::{Connection, ConnectionId};

/// The retransmissions of the same segment that were lost while others arrived, and no large ones among them.
const TRIES: usize = 2;
/// The longest time between two acknowledged segments for which the link was whole. Retransmissions count once in it.
const WHOLE: Duration = Duration::from_secs(2);
/// The time for which acknowledged segments are remembered.
const REMEMBERED: Duration = Duration::from_secs(40);
/// Acknowledged bytes between two readings that small segments hardly make.
const BULK: u64 = 4 << 10;
/// Segments that are smaller cross every link with IPv6, whose packets have 1280 bytes.
const LARGE: u32 = 1240;
/// The time without a further sign after which the way is believed to be whole.
const REST: Duration = Duration::from_mins(1);

/// Watches the connections to the other end. Times are those since any fixed moment.
#[derive(Debug, Default)]
pub struct BlackHole {
    mtu: Option<u32>,
    connections: HashMap<ConnectionId, Standing>,
    /// The segments that were acknowledged at once: their connection, and the time at which they left.
    acknowledged: Vec<(ConnectionId, Duration)>,
    /// The last time at which large segments must have arrived.
    bulk: Option<Duration>,
    found: Option<(u32, Duration)>,
}

/// The last reading of a connection.
#[derive(Debug, Clone)]
struct Standing {
    delivered: u64,
    acknowledged_bytes: u64,
    sent_again: u32,
    /// The times at which the same bytes were sent again.
    tries: Vec<Duration>,
}

impl BlackHole {
    /// Watches over a link that carries packets of `mtu` bytes, if that is known. Connections with larger packets are from
    /// before it was set.
    #[must_use]
    pub fn beyond(mtu: Option<u32>) -> Self {
        Self { mtu, ..Self::default() }
    }

    /// Adds a reading of the connections to the other end. Returns the size of IP packets that vanish, in bytes.
    pub fn add(&mut self, at: Duration, connections: &[Connection]) -> Option<u32> {
        let before = std::mem::take(&mut self.connections);
        self.acknowledged.retain(|(_, left)| at.saturating_sub(*left) < REMEMBERED);
        for one in connections {
            let ago = |ms: u32| at.saturating_sub(Duration::from_millis(ms.into()));
            let known = before.get(&one.id);
            let same = known.filter(|known| known.delivered == one.delivered && one.unacknowledged > 0);
            let at_once = |known: &Standing| known.delivered != one.delivered && known.sent_again == one.sent_again;
            if one.unacknowledged == 0 && known.is_some_and(at_once) {
                self.acknowledged.push((one.id, ago(one.sent_ms_ago)));
            }
            let mut tries = same.map(|known| known.tries.clone()).unwrap_or_default();
            if same.is_some_and(|known| known.sent_again < one.sent_again) && one.segment_bytes > LARGE {
                tries.push(ago(one.sent_ms_ago));
            }
            if known.is_some_and(|known| one.acknowledged_bytes.saturating_sub(known.acknowledged_bytes) >= BULK)
                && one.segment_bytes > LARGE
            {
                self.bulk = Some(at);
            }
            let Connection { delivered, acknowledged_bytes, sent_again, .. } = *one;
            let standing = Standing { delivered, acknowledged_bytes, sent_again, tries };
            self.connections.insert(one.id, standing);
        }
        let counts = |one: &Connection| self.mtu.is_none_or(|mtu| one.segment_bytes < mtu);
        for one in connections.iter().copied().filter(counts).collect::<Vec<_>>() {
            if self.vanish(&one) {
                self.found = Some((one.packet_bytes, at));
            }
        }
        self.found = self.found.filter(|(_, last)| at.saturating_sub(*last) < REST);
        self.found.map(|(bytes, _)| bytes)
    }

    /// Returns true if enough retransmissions of a connection were lost while the link was whole.
    fn vanish(&self, one: &Connection) -> bool {
        let Some(standing) = self.connections.get(&one.id) else { return false };
        let mut last = None;
        let mut count = 0;
        for tried in &standing.tries {
            let is_apart = last.is_none_or(|last| tried.saturating_sub(last) >= WHOLE);
            if is_apart && self.bulk < Some(*tried) && self.was_whole(&one.id, *tried) {
                (last, count) = (Some(*tried), count + 1);
            }
        }
        count >= TRIES
    }

    /// Returns true if segments of other connections left shortly before and after `tried`, and arrived.
    fn was_whole(&self, id: &ConnectionId, tried: Duration) -> bool {
        let ends = |id: &ConnectionId| -> [IpAddr; 2] { [id.local.ip(), id.remote.ip()] };
        // Each of several links has an address of its own at this end, and one of them may be cut.
        let others = || self.acknowledged.iter().filter(|(other, _)| other != id && ends(other) == ends(id));
        let before = others().map(|(_, left)| *left).filter(|left| *left <= tried).max();
        let after = others().map(|(_, left)| *left).filter(|left| *left > tried).min();
        before.zip(after).is_some_and(|(before, after)| after.saturating_sub(before) <= WHOLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(number: u16, delivered: u64, sent_again: u32) -> Connection {
        Connection { delivered, sent_again, unacknowledged: 1, received: 1, ..Connection::idle(number) }
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A connection on which a small segment was acknowledged at once.
    fn alive(number: u16, delivered: u64) -> Connection {
        Connection { unacknowledged: 0, ..connection(number, delivered, 0) }
    }

    #[test]
    fn a_segment_that_is_lost_again_and_again_while_others_arrive_is_too_large() {
        let mut hole = BlackHole::default();
        let tries = |at| [0, 0, 1, 1, 2, 2, 2, 3, 3, 3][at];
        for at in 0..10_usize {
            let seconds = u64::try_from(at).unwrap();
            let found = hole.add(s(seconds), &[connection(1, 500, tries(at)), alive(2, seconds)]);
            // The retransmissions of the seconds 2 and 4 are far enough from each other.
            assert_eq!(found.is_some(), at >= 5, "{at}");
        }
        let after = |at| [connection(1, 900, 3), alive(2, at)];
        assert_eq!(hole.add(s(30), &after(30)), Some(1500), "a moment ago");
        assert_eq!(hole.add(s(91), &after(91)), None);
    }

    #[test]
    fn an_outage_and_small_segments_are_no_black_hole() {
        let (mut outage, mut small) = (BlackHole::default(), BlackHole::default());
        for at in 0..60 {
            let tries = u32::try_from(at).unwrap();
            // Nothing arrives for 20 s, and everything after that but the segment of a connection with a long back-off.
            let is_out = (10..30).contains(&at);
            let other = if is_out { connection(2, 9, 0) } else { alive(2, at) };
            let stuck = connection(1, 500, if is_out { tries } else { 30 });
            assert_eq!(outage.add(s(at), &[stuck, other]), None, "{at}");
            let one = Connection { segment_bytes: 1100, ..connection(1, 500, tries) };
            assert_eq!(small.add(s(at), &[one, alive(2, at)]), None);
        }
    }

    #[test]
    fn connections_from_before_the_size_was_set_do_not_count() {
        let (mut set, mut too_large) = (BlackHole::beyond(Some(1280)), BlackHole::beyond(Some(1492)));
        let mut found = None;
        for at in 0..9 {
            let both = [connection(1, 500, u32::try_from(at).unwrap()), alive(2, at)];
            assert_eq!(set.add(s(at), &both), None);
            found = too_large.add(s(at), &both);
        }
        assert_eq!(found, Some(1500));
    }

    #[test]
    fn a_lossy_link_that_carries_large_segments_is_no_black_hole() {
        let mut lossy = BlackHole::default();
        for at in 0..20 {
            let tries = u32::try_from(at).unwrap();
            let other = Connection { acknowledged_bytes: at * 8_000, ..alive(2, at) };
            assert_eq!(lossy.add(s(at), &[connection(1, 500, tries), other]), None);
        }
    }
}
