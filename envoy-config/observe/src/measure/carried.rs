//! The part of the stated rate that a link carries now, so that the limit of a pair can follow it.
//!
//! A limit below the rate of the link leaves the queue of the modem empty, and the sockets of the pair, too: they wait for
//! the limit. In rain the link carries less than the limit. Then the sockets always have data, and the round trip grows. The limit
//! falls at once below the rate at which data arrives, so that the queue drains. It rises to a little less than that rate, and
//! stays there for a while. Then it rises further, and finds a link that has become better, up to the stated rate.
//!
//! An outage looks like a long queue: its length is in the mean of the round-trip times, and congestion control begins again with
//! little. So the limit does not fall soon after one.

use std::collections::HashMap;
use std::time::Duration;

use super::kernel::{Connection, ConnectionId};

/// The numbers of the rule.
struct Rule {
    /// The queue that a link may have, in microseconds, and as a part of the round trip.
    least_queue_us: u64,
    round_trips_of_queue: u64,
    /// The bytes that the pair itself may put there at once. On a slow uplink, they take longer than the above.
    burst: u64,
    /// The number of readings that must show a full link, while the queue stays long. One may be a burst.
    readings: u32,
    /// The number while this part of the stated limit arrives, in percent. Then the queue may be that of the first packets of a
    /// transfer, which the limit drains slowly.
    readings_near_the_limit: u32,
    near_percent: u64,
    /// The limit after a fall, in percent of the rate that arrives. The rest drains the queue.
    fall_percent: u64,
    /// The time that the queue has to drain, before the limit falls again. After an outage, it is that of the connections to
    /// get their rate back.
    drain: Duration,
    /// The number of readings in a row without a byte that arrives, which are an outage. One may be the wait for the first
    /// acknowledgement.
    silent_readings: u32,
    /// The limit to which it rises soon, in percent of the rate that arrived at the fall, and the time for which it stays there.
    hold_percent: u64,
    hold: Duration,
    /// The rise, in percent of the stated rate for each second.
    rise_percent: u64,
    /// The least limit, in percent of the stated rate. A link that carries less than this has another fault.
    least_percent: u64,
    /// A connection matters if it carries this part of all that arrives.
    part_of_all: u64,
}

const RULE: Rule = Rule {
    least_queue_us: 100_000,
    round_trips_of_queue: 5,
    burst: 16 * 1024,
    readings: 2,
    readings_near_the_limit: 10,
    near_percent: 90,
    fall_percent: 80,
    drain: Duration::from_secs(8),
    silent_readings: 2,
    hold_percent: 90,
    hold: Duration::from_secs(20),
    rise_percent: 3,
    least_percent: 10,
    part_of_all: 5,
};

/// The headers of packets, in thousandths of their payload. The kernel counts the payload of segments.
const HEADERS: u64 = 36;

/// The rule, and what the last reading left. Times are those since any fixed moment.
#[derive(Debug)]
pub struct Carried {
    /// The limit with which the pair sends if the link carries what is stated, in bytes a second with headers.
    limit: u64,
    /// The limit now, in thousandths of that.
    thousandths: u64,
    delivered: HashMap<ConnectionId, u64>,
    at: Duration,
    /// Since the queue is long: the number of readings that showed a full link, and the highest rate of payload, in bytes a
    /// second. BBR stops for a moment each 10 s, so the last reading may be low.
    full: (u32, u64),
    /// The number of readings in a row in which nothing arrived of what was sent.
    silent: u32,
    /// The limit to hold after the last fall, in thousandths, and the end of that.
    held: (u64, Duration),
    /// The time before which it does not fall again.
    may_fall: Duration,
}

impl Carried {
    /// Begins with the stated limit, in bytes a second with headers.
    #[must_use]
    pub fn of(limit_bytes_per_second: u64) -> Self {
        Self {
            limit: limit_bytes_per_second.max(1),
            thousandths: 1000,
            delivered: HashMap::new(),
            at: Duration::ZERO,
            full: (0, 0),
            silent: 0,
            held: (1000, Duration::ZERO),
            may_fall: Duration::ZERO,
        }
    }

    /// Reads the connections that cross the link, a second or so after the last reading. Returns the limit that fits the link,
    /// in percent of the stated one, in steps of 5.
    pub fn add(&mut self, at: Duration, connections: &[Connection]) -> u32 {
        let passed = at.saturating_sub(self.at);
        let arrived =
            |one: &Connection| one.delivered.saturating_sub(*self.delivered.get(&one.id).unwrap_or(&u64::MAX));
        let each: Vec<(&Connection, u64)> = connections.iter().map(|one| (one, arrived(one))).collect();
        let all: u64 = each.iter().map(|(_, bytes)| bytes).sum();
        let busy = each.iter().filter(|(_, bytes)| *bytes > 0 && bytes.saturating_mul(RULE.part_of_all) >= all);
        let (mut queue_is_long, mut has_more) = (false, false);
        for (connection, _) in busy {
            queue_is_long |= self.has_long_queue(connection);
            // Between two turns of the shares, a full connection has nothing to send for a moment.
            has_more |= !connection.app_limited || connection.unsent > 0;
        }
        self.delivered = connections.iter().map(|one| (one.id, one.delivered)).collect();
        self.at = at;
        let (readings, highest) = self.full;
        let millis = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX).max(1);
        let rate = all.saturating_mul(1000) / millis;
        let is_silent = all == 0 && connections.iter().any(|one| one.unacknowledged > 0);
        self.silent = if is_silent { self.silent.saturating_add(1) } else { 0 };
        if self.silent >= RULE.silent_readings {
            self.may_fall = self.may_fall.max(at + RULE.drain);
        }
        self.full = if queue_is_long { (readings + u32::from(has_more), highest.max(rate)) } else { (0, 0) };
        if self.full.0 >= self.readings_before_a_fall() && at >= self.may_fall {
            self.fall();
        } else if !queue_is_long {
            let rise = RULE.rise_percent * 10 * millis / 1000;
            let (held, until) = self.held;
            let most = if at < until { held } else { 1000 };
            self.thousandths = (self.thousandths + rise).min(most.max(self.thousandths));
        }
        u32::try_from(self.thousandths / 50 * 5).unwrap_or(100)
    }

    /// Returns true if packets of the connection wait longer than a link that is not full explains.
    fn has_long_queue(&self, connection: &Connection) -> bool {
        let Some(least) = connection.min_rtt_us.map(u64::from) else { return false };
        let queue = u64::from(connection.rtt_us).saturating_sub(least);
        let burst_us = RULE.burst * 1_000_000 / self.limit;
        queue > RULE.least_queue_us.max(least / RULE.round_trips_of_queue).max(burst_us)
    }

    fn readings_before_a_fall(&self) -> u32 {
        let is_near = with_headers(self.full.1).saturating_mul(100) >= self.limit.saturating_mul(RULE.near_percent);
        if is_near { RULE.readings_near_the_limit } else { RULE.readings }
    }

    fn fall(&mut self) {
        let (_, highest) = std::mem::take(&mut self.full);
        let rate = with_headers(highest);
        let part = |percent: u64| rate.saturating_mul(percent * 10) / self.limit;
        self.thousandths = part(RULE.fall_percent).clamp(RULE.least_percent * 10, self.thousandths);
        self.held = (part(RULE.hold_percent).min(1000), self.at + RULE.hold);
        self.may_fall = self.at + RULE.drain;
    }
}

fn with_headers(payload: u64) -> u64 {
    payload.saturating_mul(1000 + HEADERS) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const LIMIT: u64 = 235_000;

    /// A ship's link with a pipe that carries all, in steps of a second.
    struct Bed {
        carried: Carried,
        at: Duration,
        delivered: u64,
    }

    impl Bed {
        fn new(limit: u64) -> Self {
            let mut this = Self { carried: Carried::of(limit), at: Duration::ZERO, delivered: 0 };
            assert_eq!(this.step(0, 0, true), 100);
            this
        }

        /// A second in which `bytes` of payload arrive, with `queue_ms` in the queue.
        fn step(&mut self, bytes: u64, queue_ms: u32, app_limited: bool) -> u32 {
            self.turn(bytes, queue_ms, app_limited, 0)
        }

        /// The same, with `unsent` bytes that wait in the socket at its end.
        fn turn(&mut self, bytes: u64, queue_ms: u32, app_limited: bool, unsent: u32) -> u32 {
            self.at += SECOND;
            self.delivered += bytes;
            let pipe = Connection {
                delivered: self.delivered,
                rtt_us: 700_000 + queue_ms * 1000,
                min_rtt_us: Some(700_000),
                app_limited,
                unsent,
                ..Connection::idle(1)
            };
            // A connection that carries next to nothing says nothing about the link.
            let idle = Connection {
                rtt_us: 9_000_000,
                min_rtt_us: Some(1),
                delivered: self.delivered / 100,
                ..Connection::idle(2)
            };
            self.carried.add(self.at, &[pipe, idle])
        }
    }

    #[test]
    fn a_link_that_carries_half_has_a_limit_below_that_and_gets_it_back_slowly() {
        let mut bed = Bed::new(LIMIT);
        assert_eq!(bed.step(115_000, 900, false), 100, "one reading may be a burst");
        // 115 KB of payload are 119 KB with headers, and four fifths of that are 40 % of the limit.
        assert_eq!(bed.step(115_000, 1300, false), 40);
        assert_eq!(bed.step(115_000, 800, false), 40, "the queue drains");
        assert_eq!(bed.step(92_000, 400, true), 40);
        assert_eq!(bed.step(92_000, 100, true), 40);
        let seconds =
            |bed: &mut Bed, percent: u32| (1..100).find(|_| bed.step(92_000, 0, true) >= percent).unwrap_or(0);
        // Nine tenths of what was carried, until 20 s after the fall.
        assert_eq!([45, 50, 100].map(|percent| seconds(&mut bed, percent)), [1, 17, 16]);
    }

    #[test]
    fn a_pair_that_waits_for_its_own_limit_keeps_it() {
        let mut bed = Bed::new(LIMIT);
        // Another program fills the queue, and the pair sends little.
        for _ in 0..20 {
            assert_eq!(bed.step(20_000, 600, true), 100);
        }
        // The link is used up to the limit, and its queue is short.
        for _ in 0..20 {
            assert_eq!(bed.step(225_000, 130, false), 100);
        }
        // Bursts of a second.
        for _ in 0..20 {
            assert_eq!(bed.step(225_000, 400, false), 100);
            assert_eq!(bed.step(225_000, 0, false), 100);
        }
    }

    #[test]
    fn a_connection_that_waits_for_its_next_turn_is_full_too() {
        let mut bed = Bed::new(LIMIT);
        let limits = [0, 30_000, 0, 0, 12_000].map(|unsent| bed.turn(115_000, 900, true, unsent));
        assert_eq!(limits, [100, 100, 100, 100, 40]);
        // A short page beside the traffic of others, and a queue that empties in between.
        let mut bed = Bed::new(LIMIT);
        for _ in 0..20 {
            assert_eq!(bed.turn(20_000, 600, true, 30_000), 100);
            assert_eq!(bed.turn(20_000, 0, true, 30_000), 100);
        }
    }

    #[test]
    fn the_queue_of_first_packets_has_time_to_drain_while_the_link_carries_the_limit() {
        let mut bed = Bed::new(LIMIT);
        let limits: Vec<u32> = (0..10).map(|_| bed.step(225_000, 600, false)).collect();
        // A link that carries a little less than the limit has a queue for as long.
        assert_eq!((limits[..9].iter().all(|limit| *limit == 100), limits[9]), (true, 80));
    }

    #[test]
    fn the_echo_of_an_outage_is_no_queue() {
        let limits_after = |silence: usize| {
            let mut bed = Bed::new(LIMIT);
            assert_eq!(bed.step(225_000, 50, false), 100);
            for _ in 0..silence {
                bed.at += SECOND;
                let waits = Connection { unacknowledged: 9, delivered: bed.delivered, ..Connection::idle(1) };
                assert_eq!(bed.carried.add(bed.at, &[waits]), 100);
            }
            [20_000, 90_000, 180_000].map(|bytes| bed.turn(bytes, 700, false, 30_000))
        };
        assert_eq!(limits_after(5), [100; 3]);
        assert_eq!(limits_after(1), [100, 30, 30], "the first acknowledgement of a transfer takes as long");
    }

    #[test]
    fn a_turn_of_a_large_stream_is_not_the_queue_of_a_slow_uplink() {
        let mut bed = Bed::new(51_700);
        for _ in 0..20 {
            assert_eq!(bed.step(45_000, 300, false), 100);
        }
        assert_eq!((bed.step(30_000, 400, false), bed.step(30_000, 400, false)), (100, 45));
    }

    #[test]
    fn a_link_that_carries_nothing_keeps_a_tenth() {
        let mut bed = Bed::new(LIMIT);
        bed.step(1000, 5000, false);
        assert_eq!(bed.step(1000, 9000, false), 10);
    }
}
