//! The connections whose congestion control starts again while they carry bytes without a pause.
//!
//! BBR sends four packets a round trip for at least 200 ms when it has not seen its least round trip for 10 s
//! (`BBRProbeRTT`, draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.5). It does so to let a queue drain that hides the
//! true round trip. A link with a limit has no such queue: its pieces wait in [`crate::link`]. But with a round trip of 600 ms, that
//! pause leaves the link empty for a second of ten. BBR that starts again keeps its window and takes the least round trip of
//! the last minutes, and its 10 s begin again.
//!
//! - **A pause of the streams** has the same effect, so only a connection that is busy for long starts again.
//! - **A connection that is full** has a queue after all: the link carries less than was stated, or its round trip has grown. BBR needs
//!   its pause there, and has it. If a connection is full soon after a renewal, the next one waits twice as long.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::StreamId;

/// The time between two renewals. Linux lets BBR pause 10 s after the last sight of the least round trip.
const PERIOD: Duration = Duration::from_secs(8);

/// The most time between two renewals: for as long, Linux remembers the least round trip (`net.ipv4.tcp_min_rtt_wlen`), and a
/// renewal would bring back one that is not true any more.
const LONGEST: Duration = Duration::from_mins(5);

/// The most by which a connection can have been full for longer than it was free. As long after it is free, a renewal may come.
const MOST_FULL: Duration = Duration::from_secs(2);

/// The same time of a connection that counts as free. Every piece fills a connection for some milliseconds.
const FREE: Duration = Duration::from_millis(100);

/// The same time after a renewal that did harm.
const HARM: Duration = Duration::from_millis(1500);

/// The time without a piece after which nothing is on its way.
const PAUSE: Duration = Duration::from_secs(2);

/// The age of the least round trip at which BBR measures again. It does so without a pause of its own if nothing is on its way.
const AGE: Duration = Duration::from_secs(10);

/// The connections of a link that may start again. Streams that have not joined change nothing.
#[derive(Debug, Default)]
pub struct Renewals {
    /// By Envoy's numbers.
    connections: HashMap<u64, Connection>,
    /// The connection that each stream crosses.
    crossed: HashMap<StreamId, u64>,
}

#[derive(Debug)]
struct Connection {
    streams: usize,
    /// Those that the connection holds up.
    full: HashSet<StreamId>,
    /// The time for which it held up all of them, less the time for which it did not, until `counted_at`. Never below zero.
    full_for: Duration,
    counted_at: Duration,
    piece_at: Duration,
    /// The last time at which BBR started or measured again.
    fresh_since: Duration,
    /// The time from then to the next renewal.
    wait: Duration,
    /// True after a renewal, until the connection is full.
    is_on_trial: bool,
}

impl Connection {
    fn new(now: Duration) -> Self {
        Self {
            streams: 0,
            full: HashSet::new(),
            full_for: Duration::ZERO,
            counted_at: now,
            piece_at: now,
            fresh_since: now,
            wait: PERIOD,
            is_on_trial: false,
        }
    }

    /// Returns true if it holds up all of its streams. A single one may wait for a slow client.
    fn is_full(&self) -> bool {
        self.streams > 0 && self.full.len() >= self.streams
    }

    /// Counts the time since the last call.
    fn count(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.counted_at);
        self.counted_at = self.counted_at.max(now);
        self.full_for = if self.is_full() {
            self.full_for.saturating_add(passed).min(MOST_FULL)
        } else {
            self.full_for.saturating_sub(passed)
        };
        let (does_harm, age) = (self.full_for >= HARM, now.saturating_sub(self.fresh_since));
        if self.is_on_trial && (does_harm || age >= PERIOD) {
            self.wait = if does_harm { self.wait.saturating_mul(2).min(LONGEST) } else { PERIOD };
            self.is_on_trial = false;
        }
    }
}

impl Renewals {
    /// Adds a stream of a connection. Times are those of any clock that does not step.
    pub fn join(&mut self, stream: StreamId, connection: u64, now: Duration) {
        self.connections.retain(|_, known| known.streams > 0 || now.saturating_sub(known.piece_at) < PAUSE);
        let known = self.connections.entry(connection).or_insert_with(|| Connection::new(now));
        known.count(now);
        known.streams = known.streams.saturating_add(1);
        self.crossed.insert(stream, connection);
    }

    /// Removes a stream.
    pub fn leave(&mut self, stream: StreamId, now: Duration) {
        if let Some(known) = self.connection(stream, now) {
            known.streams = known.streams.saturating_sub(1);
            known.full.remove(&stream);
        }
        self.crossed.remove(&stream);
    }

    /// The connection takes no more bytes of a stream.
    pub fn hold_up(&mut self, stream: StreamId, now: Duration) {
        if let Some(known) = self.connection(stream, now) {
            known.full.insert(stream);
        }
    }

    /// The connection takes bytes of a stream again.
    pub fn release(&mut self, stream: StreamId, now: Duration) {
        if let Some(known) = self.connection(stream, now) {
            known.full.remove(&stream);
        }
    }

    /// Returns the connection of a stream, with its time counted until now.
    fn connection(&mut self, stream: StreamId, now: Duration) -> Option<&mut Connection> {
        let known = self.connections.get_mut(self.crossed.get(&stream)?)?;
        known.count(now);
        Some(known)
    }

    /// Takes note of a piece of a stream, and returns true if the congestion control of its connection is to start again.
    pub fn is_due(&mut self, stream: StreamId, now: Duration) -> bool {
        let Some(known) = self.connection(stream, now) else { return false };
        let since = |time: Duration| now.saturating_sub(time);
        if since(known.piece_at) >= PAUSE && since(known.fresh_since) >= AGE {
            (known.fresh_since, known.is_on_trial) = (now, false);
        }
        known.piece_at = now;
        let is_due = !known.is_full() && known.full_for <= FREE && since(known.fresh_since) >= known.wait;
        if is_due {
            (known.fresh_since, known.is_on_trial) = (now, true);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const ONE: StreamId = StreamId(1);
    const OTHER: StreamId = StreamId(2);
    const LINK: u64 = 7;

    /// A connection with a stream since 0 s, which sends a piece each second.
    struct Busy {
        renewals: Renewals,
        sends: StreamId,
        now: Duration,
    }

    impl Busy {
        fn new() -> Self {
            let mut renewals = Renewals::default();
            renewals.join(ONE, LINK, Duration::ZERO);
            Self { renewals, sends: ONE, now: Duration::ZERO }
        }

        /// Returns the seconds until `end` at which a renewal was due.
        fn until(&mut self, end: u64) -> Vec<u64> {
            let mut due = Vec::new();
            while self.now < SECOND * u32::try_from(end).unwrap() {
                self.now += SECOND;
                if self.renewals.is_due(self.sends, self.now) {
                    due.push(self.now.as_secs());
                }
            }
            due
        }

        fn is_full(&mut self) {
            self.renewals.hold_up(ONE, self.now);
        }

        fn is_free(&mut self) {
            self.renewals.release(ONE, self.now);
        }
    }

    #[test]
    fn a_busy_connection_is_renewed_before_bbr_pauses_and_a_pause_does_the_same() {
        let mut busy = Busy::new();
        assert_eq!(busy.until(30), [8, 16, 24]);
        busy.now += PAUSE * 2;
        assert_eq!(busy.until(44), [43], "8 s after the first piece behind the pause");
        busy.now += PAUSE;
        assert_eq!(busy.until(52), [51], "BBR does not measure again at the end of a pause that begins sooner");
        assert!(!busy.renewals.is_due(OTHER, SECOND * 99), "a stream that has not joined changes nothing");
    }

    #[test]
    fn a_full_connection_is_not_renewed_until_it_was_free_for_as_long() {
        let mut busy = Busy::new();
        assert_eq!(busy.until(3), Vec::<u64>::new());
        busy.is_full();
        assert_eq!(busy.until(40), Vec::<u64>::new());
        busy.is_free();
        assert_eq!(busy.until(51), [42, 50], "it was full before the first renewal, which is no sign against one");
    }

    #[test]
    fn a_piece_that_fills_a_connection_for_a_moment_changes_nothing() {
        let mut busy = Busy::new();
        let mut at = Vec::new();
        while busy.now < SECOND * 17 {
            busy.is_full();
            busy.now += SECOND / 100;
            busy.is_free();
            busy.now += SECOND / 7;
            if busy.renewals.is_due(ONE, busy.now) {
                at.push(busy.now.as_secs());
            }
        }
        assert_eq!(at, [8, 16]);
    }

    #[test]
    fn a_renewal_that_fills_the_connection_makes_the_next_one_rarer_until_one_does_not() {
        let mut busy = Busy::new();
        let mut at = Vec::new();
        while at.len() < 7 {
            let due = busy.until(busy.now.as_secs() + 1);
            if !due.is_empty() {
                busy.is_full();
                busy.now += MOST_FULL;
                busy.is_free();
            }
            at.extend(due);
        }
        let waits: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(waits, [16, 32, 64, 128, 256, 300]);
        let next = at.last().unwrap() + 300;
        assert_eq!(busy.until(next + 17), [next, next + 8, next + 16]);
    }

    #[test]
    fn a_stream_whose_client_is_slow_does_not_count_as_a_full_connection() {
        let mut busy = Busy::new();
        busy.renewals.join(OTHER, LINK, busy.now);
        busy.is_full();
        assert_eq!(busy.until(9), [8]);
        busy.renewals.hold_up(OTHER, busy.now);
        assert_eq!(busy.until(30), Vec::<u64>::new());
        busy.renewals.leave(OTHER, busy.now);
        assert_eq!(busy.until(40), Vec::<u64>::new(), "the first one alone is full still");
        busy.renewals.leave(ONE, busy.now);
        busy.renewals.join(OTHER, LINK, busy.now);
        busy.sends = OTHER;
        assert_eq!(busy.until(42), [42], "a stream may end while it is full");
    }

    #[test]
    fn connections_without_a_stream_are_forgotten_after_a_pause_and_not_before() {
        let mut busy = Busy::new();
        assert_eq!(busy.until(7), Vec::<u64>::new());
        busy.renewals.leave(ONE, busy.now);
        busy.renewals.join(OTHER, LINK, busy.now + SECOND);
        busy.sends = OTHER;
        assert_eq!(busy.until(9), [8], "one short response follows another");
        busy.renewals.leave(OTHER, busy.now);
        for connection in 0..1000 {
            busy.now += PAUSE;
            busy.renewals.join(ONE, connection, busy.now);
            busy.renewals.leave(ONE, busy.now);
        }
        assert_eq!((busy.renewals.connections.len(), busy.renewals.crossed.len()), (1, 0));
    }
}
