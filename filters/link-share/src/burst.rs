//! The bytes that a client may send before the downloads of others, after a pause.
//!
//! Equal shares alone make a page wait for all who download: beside four of them it has a fifth of the link. But a page ends, so
//! it costs a download little time if it goes first, and it gains much. No client says what is a page. So it is the first
//! bytes of a client that was quiet, as in least-attained-service scheduling (Kleinrock, "Queueing Systems" II, section 4.7). A token
//! bucket bounds them, which fills while the client is quiet. So a client that pauses again and again gains no more than its rate.

use std::time::Duration;

use crate::allowance::Allowance;
use crate::subscriber::Subscriber;

/// The part of the link that a client has saved up after a long silence, as the time in which it crosses.
const SAVED: Duration = Duration::from_secs(2);

/// The silence that saves the bytes of one second of the link, in seconds.
const QUIET_FOR_A_SECOND: u32 = 4;

/// The first bytes of a stream, or of a client after a pause.
pub(crate) const FIRST: u64 = 32 * 1024;

/// The least silence that counts. A download is silent for as long as its origin takes.
const QUIET: Duration = Duration::from_millis(300);

/// The silence after which a page has ended. Within a page, there is a round trip of it before each of its flights.
const PAUSE: Duration = Duration::from_secs(2);

/// The place of a client among the others. Less is sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// The first bytes after a pause: handshakes, keystrokes and the beginnings of pages.
    First,
    /// The rest of a page. The page that began first is sooner: one after the other, pages take less time than all at once.
    Page {
        /// The end of the pause.
        since: Duration,
    },
    /// More than what was saved up: downloads, which have equal shares.
    Rest,
}

/// The bytes of one client. A new one has saved up all it can.
#[derive(Debug, Default)]
pub(crate) struct Burst {
    /// The bytes that are used up of those that can be saved.
    used: u64,
    /// The bytes since the last pause.
    sent: u64,
    /// The end of that pause.
    since: Duration,
    /// The last time at which the client sent bytes, or began to have some. None: it is new.
    active_at: Option<Duration>,
}

/// Returns the bytes that a client of a link can save up. Without a limit nobody waits for a share, and nothing is saved.
pub(crate) fn most(link: &Allowance) -> u64 {
    link.in_time(SAVED).unwrap_or_default()
}

impl Burst {
    /// The client has more to send, and had nothing. Times are those of any clock that does not step.
    pub(crate) fn resume(&mut self, now: Duration, link: &Allowance) {
        let silence = self.silence(now);
        if silence >= QUIET {
            self.used = self.used.saturating_sub(saved_in(silence, link));
        }
        if silence >= PAUSE {
            (self.since, self.sent) = (now, 0);
        }
        // A client that takes back what it has would be paid for the same silence again.
        self.active_at = Some(now);
    }

    /// Counts bytes of a client with a weight in tenths of the usual one, of `most` that can be saved up. Returns those that were not.
    ///
    /// A lighter client saves less. A heavier one saves no more: it has the larger share afterwards.
    pub(crate) fn pay(&mut self, bytes: u64, tenths: u32, most: u64, now: Duration) -> u64 {
        let [weight, usual] = [tenths.clamp(1, Subscriber::USUAL_TENTHS), Subscriber::USUAL_TENTHS].map(u64::from);
        // Rounded up, so that no piece is free and the last byte is used up.
        let left = most.saturating_sub(self.used).saturating_mul(weight).div_ceil(usual);
        let saved = bytes.min(left);
        self.used = self.used.saturating_add(saved.saturating_mul(usual).div_ceil(weight));
        self.sent = self.sent.saturating_add(bytes);
        self.active_at = Some(now);
        bytes - saved
    }

    /// Returns the place of the client, which can save up `most` bytes.
    pub(crate) fn rank(&self, most: u64) -> Rank {
        if self.used >= most {
            Rank::Rest
        } else if self.sent < FIRST {
            Rank::First
        } else {
            Rank::Page { since: self.since }
        }
    }

    /// Returns true if a client that is quiet until `now` would be as good as new.
    pub(crate) fn is_as_new(&self, now: Duration, link: &Allowance) -> bool {
        self.used <= saved_in(self.silence(now), link)
    }

    fn silence(&self, now: Duration) -> Duration {
        self.active_at.map_or(Duration::MAX, |active_at| now.saturating_sub(active_at))
    }
}

fn saved_in(silence: Duration, link: &Allowance) -> u64 {
    link.in_time(silence / QUIET_FOR_A_SECOND).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_any_weight_pays_for_each_byte_and_uses_up_what_it_saved() {
        for tenths in 1..=99 {
            let (mut burst, mut unsaved, pieces) = (Burst::default(), 0, 1000);
            for _ in 0..pieces {
                unsaved += burst.pay(7, tenths, 1001, Duration::ZERO);
            }
            let (saved, exact) = (7 * pieces - unsaved, 1001 * u64::from(tenths.min(10)) / 10);
            assert_eq!(burst.rank(1001), Rank::Rest, "{tenths}");
            // Each piece may cost a part of a byte more.
            assert!(saved.abs_diff(exact) <= exact / 20 + 1, "{tenths}: {saved} of {exact}");
        }
    }
}
