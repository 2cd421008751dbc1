//! Tells from the kernel's figures of a pair's connections that the ground has fallen silent.
//!
//! The figures cost the link nothing: they show what clients, pings and health checks have sent, and what came back. A
//! link that is slow or full is not silent, because something of the ground arrives all the time. So silence needs both:
//!
//! - bytes that nobody acknowledges for longer than two lost packets and a full queue explain,
//! - and nothing new from the ground for as long, on any connection.
//!
//! A ground's program may hang while its kernel acknowledges. Then Envoy's health checks fail, and no bytes come.

use std::collections::HashMap;
use std::time::Duration;

use longhaul_config::Link;
use serde::{Deserialize, Serialize};

use super::kernel::{Connection, ConnectionId};

/// The kind of a silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Silent {
    /// Nothing comes back over the link.
    Link,
    /// The ground's kernel acknowledges, and its program does not respond.
    Program,
    /// Nothing comes back, and this kernel drops packets by their source (`rp_filter`).
    ReversePath,
}

/// The results of Envoy's health checks of the ground, since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checks {
    /// Those with a response.
    pub answered: u64,
    /// Those without.
    pub failed: u64,
}

/// Listens to the ground. Times are those since any fixed moment.
#[derive(Debug)]
pub struct Listening {
    patience: Duration,
    /// The time of the last acknowledgement of new bytes. None before the first reading with a connection.
    acknowledged: Option<Duration>,
    /// The time of the last new bytes from the ground.
    received: Option<Duration>,
    /// The time of the last bytes of a transfer. During a download, nothing is sent that could be acknowledged.
    transferred: Option<Duration>,
    connections: HashMap<ConnectionId, Heard>,
    /// True if the ground was sent something after its last bytes.
    asked: bool,
    /// The checks at the time of the last one with a response.
    checks: Option<Checks>,
    silent: Option<(Silent, Duration)>,
}

/// The last reading of a connection.
#[derive(Debug, Clone, Copy)]
struct Heard {
    delivered: u64,
    received: u64,
    /// The time since when bytes wait for an acknowledgement. None: none do.
    waits_since: Option<Duration>,
}

impl Listening {
    /// Listens over this link.
    #[must_use]
    pub fn over(link: &Link) -> Self {
        Self {
            patience: patience(link),
            acknowledged: None,
            received: None,
            transferred: None,
            connections: HashMap::new(),
            asked: false,
            checks: None,
            silent: None,
        }
    }

    /// Adds a reading of the connections to the ground. `checks` returns those of Envoy, and is called only if nothing
    /// else tells whether the ground responds. Returns the silence, and the time of its beginning.
    pub fn add(
        &mut self,
        at: Duration,
        connections: &[Connection],
        checks: impl FnOnce() -> Option<Checks>,
    ) -> Option<(Silent, Duration)> {
        self.hear(at, connections);
        if let Some((kind, since)) = self.silent {
            // What a ground sends by itself proves no response. Without a connection there is nothing to hear.
            let heard = match kind {
                Silent::Link | Silent::ReversePath => self.acknowledged,
                Silent::Program => self.received,
            };
            self.silent = self.silent.filter(|_| heard.is_none_or(|heard| heard <= since));
        }
        if let Some(since) = self.unacknowledged(at) {
            self.silent = self.silent.filter(|(kind, _)| *kind == Silent::Link).or(Some((Silent::Link, since)));
        } else if self.silent.is_none() && self.asked && connections.iter().any(|one| one.is_open) {
            let bytes = self.received.filter(|heard| at.saturating_sub(*heard) >= self.patience);
            self.silent =
                bytes.filter(|_| checks().is_some_and(|now| self.only_fail(now))).map(|it| (Silent::Program, it));
        }
        self.silent
    }

    fn hear(&mut self, at: Duration, connections: &[Connection]) {
        let ago = |ms: u32| at.saturating_sub(Duration::from_millis(ms.into()));
        let before = std::mem::take(&mut self.connections);
        for one in connections {
            let known = before.get(&one.id);
            // One of an earlier run may wait for minutes until its last bytes are sent again.
            if known.is_none() && !one.is_open {
                continue;
            }
            // A connection that is new was acknowledged when it was made.
            if known.is_none_or(|known| known.delivered != one.delivered) {
                self.acknowledged = self.acknowledged.max(Some(ago(one.acknowledged_ms_ago)));
            }
            if one.received > 0 && known.is_none_or(|known| known.received != one.received) {
                self.received = self.received.max(Some(ago(one.received_ms_ago)));
            }
            if known.is_some_and(|known| one.received.saturating_sub(known.received) >= TRANSFER) {
                self.transferred = self.transferred.max(Some(ago(one.received_ms_ago)));
            }
            // The oldest of the bytes that wait left no later than the last ones.
            let since = known.filter(|known| known.delivered == one.delivered).and_then(|known| known.waits_since);
            let waits_since = (one.unacknowledged > 0).then(|| since.unwrap_or_else(|| ago(one.sent_ms_ago)));
            let heard = Heard { delivered: one.delivered, received: one.received, waits_since };
            self.connections.insert(one.id, heard);
        }
        let sent = connections.iter().map(|one| ago(one.sent_ms_ago)).max();
        // What is sent at once after bytes came is a receipt, and asks for nothing.
        self.asked = sent.zip(self.received).is_some_and(|(sent, heard)| sent > heard + RECEIPT);
    }

    /// Returns the time since when bytes wait, if that is long and nothing came from the ground for as long.
    fn unacknowledged(&self, at: Duration) -> Option<Duration> {
        let heard = self.acknowledged.max(self.transferred);
        // If the ground was heard when bytes had waited for long, their connection is stuck, and not the link.
        let is_stuck = |since: &Duration| heard.is_some_and(|heard| heard > *since + self.patience);
        let since =
            self.connections.values().filter_map(|one| one.waits_since).filter(|since| !is_stuck(since)).min()?;
        let since = since.max(heard.unwrap_or_default());
        (at.saturating_sub(since) >= self.patience).then_some(since)
    }

    /// Returns true if checks failed since the last one with a response.
    fn only_fail(&mut self, now: Checks) -> bool {
        // Counters that shrink are those of a new process.
        let before = self.checks.filter(|before| before.answered == now.answered && before.failed <= now.failed);
        self.checks = Some(before.unwrap_or(now));
        before.is_some_and(|before| before.failed < now.failed)
    }
}

/// The bytes between two readings that are a transfer. A ground whose packets get through and that hears nothing sends pings
/// of 40 bytes.
const TRANSFER: u64 = 512;

/// The time within which a receipt follows what it acknowledges.
const RECEIPT: Duration = Duration::from_secs(1);

/// Returns the time after which unacknowledged bytes mean silence. A packet that is lost twice comes again after less than
/// three seconds and two round trips. 64 KiB of a page may be before it in the queue.
fn patience(link: &Link) -> Duration {
    Duration::from_secs(3) + link.rtt * 2 + link.queueing_delay()
}

#[cfg(test)]
mod tests {
    use longhaul_config::Rate;

    use super::*;

    const GEO: Duration = Duration::from_millis(700);

    fn listening() -> Listening {
        let [down, up] = [20_000_000, 5_000_000].map(|bits_per_second| Rate { bits_per_second });
        Listening::over(&Link::of(GEO, down, up))
    }

    fn connection(number: u16) -> Connection {
        Connection { received: 1, ..Connection::idle(number) }
    }

    /// A connection on which something waits at `at_ms`, left at `sent_ms`, and nothing came since `heard_ms`.
    fn waits(at_ms: u32, sent_ms: u32, heard_ms: u32) -> Connection {
        let ago = at_ms - heard_ms;
        let sent_ms_ago = at_ms - sent_ms;
        Connection { unacknowledged: 1, acknowledged_ms_ago: ago, received_ms_ago: ago, sent_ms_ago, ..connection(1) }
    }

    /// The same, which is acknowledged every `period_ms` and then waits again.
    fn acknowledged_each(number: u16, at_ms: u32, period_ms: u32) -> Connection {
        let last = at_ms - at_ms % period_ms;
        Connection { id: connection(number).id, delivered: u64::from(last), ..waits(at_ms, last, last) }
    }

    fn s(ms: u32) -> Duration {
        Duration::from_millis(ms.into())
    }

    fn no_checks() -> Option<Checks> {
        None
    }

    #[test]
    fn a_cut_link_is_silent_within_ten_seconds_and_until_something_is_acknowledged() {
        let mut one = listening();
        // The link is cut at 0. The next health check leaves after the longest pause of a free link.
        let check = 3700;
        let mut first = None;
        for at in (0..10_000).step_by(500) {
            let idle = Connection { unacknowledged: 0, sent_ms_ago: at, ..waits(at, 0, 0) };
            let seen = if at < check { idle } else { waits(at, check, 0) };
            let silent = one.add(s(at), &[seen], no_checks);
            first = first.or(silent.map(|(kind, since)| (kind, since, at)));
        }
        let (kind, since, at) = first.unwrap();
        assert_eq!((kind, since), (Silent::Link, s(check)));
        assert!(at < 9000, "{at} ms");
        // Envoy closes the check's connection before long. Its bytes still wait.
        let mut closing = listening();
        let waiting = |at: u32, is_open| [Connection { is_open, ..waits(at, 1000, 0) }];
        assert_eq!(closing.add(s(1000), &waiting(1000, true), no_checks), None);
        assert_eq!(closing.add(s(6000), &waiting(6000, false), no_checks), Some((Silent::Link, s(1000))));
        assert_eq!(listening().add(s(6000), &waiting(6000, false), no_checks), None, "of an earlier run");
        // If only one direction is cut, the ground's own pings arrive. They respond to nothing.
        let mut other = listening();
        let mut named_at = None;
        for at in (0..20_000).step_by(500) {
            let idle = Connection { unacknowledged: 0, sent_ms_ago: at, ..waits(at, 0, 0) };
            let check = if at < check { idle } else { waits(at, check, 0) };
            let pings = u64::from(at / 2000) * 40;
            let pinged =
                Connection { received: 1 + pings, received_ms_ago: at % 2000, unacknowledged: 0, ..connection(2) };
            let pinged = Connection { acknowledged_ms_ago: at, sent_ms_ago: at, ..pinged };
            named_at = named_at.or(other.add(s(at), &[check, pinged], no_checks).map(|_| at));
        }
        assert_eq!(named_at, Some(8500));
        let ping = Connection { received: 2, received_ms_ago: 10, ..waits(26_000, check, 0) };
        assert_eq!(one.add(s(26_000), &[ping], no_checks), Some((Silent::Link, s(check))));
        // The kernel gives the connections up, and another one opens later.
        assert!(one.add(s(60_000), &[], no_checks).is_some());
        let young = Connection { acknowledged_ms_ago: 100, received: 0, ..connection(2) };
        assert_eq!(one.add(s(61_000), &[young], no_checks), None);
    }

    #[test]
    fn a_slow_link_with_a_full_queue_and_lost_packets_is_not_silent() {
        let mut one = listening();
        // Acknowledgements take 0.7 s and a queue of 2 s. One packet is lost twice: it waits for 4.4 s.
        for at in (0..60_000_u32).step_by(500) {
            let seen = [acknowledged_each(1, at, 2700), acknowledged_each(2, at, 4400)];
            assert_eq!(one.add(s(at), &seen, no_checks), None, "{at} ms");
        }
        // One connection hangs for good, such as behind an MTU black hole. The others are heard.
        for at in (60_000..90_000_u32).step_by(500) {
            let hangs = Connection { id: connection(3).id, ..waits(at, 60_000, 60_000) };
            assert_eq!(one.add(s(at), &[hangs, acknowledged_each(4, at, 3700)], no_checks), None, "{at} ms");
        }
        // And when the others have become idle, too.
        for at in (90_000..120_000_u32).step_by(500) {
            let hangs = Connection { id: connection(3).id, ..waits(at, 60_000, 60_000) };
            let idle = Connection { unacknowledged: 0, ..acknowledged_each(4, 89_500, 3700) };
            assert_eq!(one.add(s(at), &[hangs, idle], no_checks), None, "{at} ms");
        }
    }

    #[test]
    fn a_link_over_which_a_download_comes_is_not_silent() {
        let mut one = listening();
        for at in (0..60_000_u32).step_by(500) {
            // A request on another connection was lost, and the download sends nothing.
            let hangs = Connection { id: connection(2).id, ..waits(at, 0, 0) };
            let download = Connection { received: u64::from(at) * 2, sent_ms_ago: at, ..connection(1) };
            let download = Connection { acknowledged_ms_ago: at, ..download };
            assert_eq!(one.add(s(at), &[hangs, download], no_checks), None, "{at} ms");
        }
    }

    #[test]
    fn an_idle_metered_link_on_which_nothing_is_sent_is_not_silent() {
        let mut one = listening();
        for at in (0..240_000_u32).step_by(500) {
            let idle = Connection { unacknowledged: 0, ..waits(at, 0, 0) };
            assert_eq!(one.add(s(at), &[idle], || panic!("nothing is to be asked")), None);
        }
    }

    #[test]
    fn a_program_that_hangs_is_told_from_a_link_that_is_silent() {
        let mut one = listening();
        let at = |at: u32, failed: u64| {
            // The kernel of the ground acknowledges what the check sent at 3 s.
            let seen = Connection { sent_ms_ago: at - 3000, received_ms_ago: at, ..connection(1) };
            (s(at), seen, Checks { answered: 5, failed })
        };
        let mut add = |(at, seen, checks): (Duration, Connection, Checks)| one.add(at, &[seen], || Some(checks));
        assert_eq!(add(at(3000, 2)), None);
        assert_eq!(add(at(5000, 2)), None, "failures from before");
        assert_eq!(add(at(8000, 3)), Some((Silent::Program, s(0))));
        let (now, seen, checks) = at(9000, 3);
        let responds = Connection { received: 2, received_ms_ago: 10, ..seen };
        assert_eq!(add((now, responds, checks)), None, "it responds again");
    }
}
