//! The bytes that may be sent now: a token bucket that may go below zero by one piece. A link without a limit always has some.

use std::time::Duration;

/// The time for which an idle link saves up. A longer one would let a burst fill the queue of the modem.
const SAVED: Duration = Duration::from_millis(50);

/// The bytes that may be sent on a link.
#[derive(Debug, Clone)]
pub struct Allowance {
    /// Bytes a second, at least 1. None: no limit.
    rate: Option<u64>,
    /// Billionths of a byte. Below zero, a piece was larger than what was left.
    credit: i128,
    filled_at: Duration,
}

/// The parts of a byte that are counted: those that come in a nanosecond at one byte a second.
const PARTS: i128 = 1_000_000_000;

impl Allowance {
    /// Returns the allowance of a link that was idle, at `now` of any clock that does not step.
    #[must_use]
    pub fn new(bytes_per_second: Option<u64>, now: Duration) -> Self {
        let mut this = Self { rate: None, credit: 0, filled_at: now };
        this.set_rate(bytes_per_second, now);
        this.credit = this.most();
        this
    }

    fn most(&self) -> i128 {
        self.rate.map_or(0, |rate| i128::from(rate).saturating_mul(nanoseconds(SAVED)))
    }

    fn fill(&mut self, now: Duration) {
        let passed = nanoseconds(now.saturating_sub(self.filled_at));
        self.filled_at = self.filled_at.max(now);
        let more = self.rate.map_or(0, |rate| i128::from(rate).saturating_mul(passed));
        self.credit = self.credit.saturating_add(more).min(self.most());
    }

    /// Returns true if a piece may be sent.
    pub fn has_any(&mut self, now: Duration) -> bool {
        self.fill(now);
        self.rate.is_none() || self.credit > 0
    }

    /// Returns the bytes that are owed since the last look.
    #[must_use]
    pub fn owed(&self) -> u64 {
        u64::try_from((self.credit.min(0) / PARTS).unsigned_abs()).unwrap_or(u64::MAX)
    }

    /// Takes what a piece costs, also if it is more than what is left.
    pub fn take(&mut self, bytes: u64) {
        if self.rate.is_some() {
            self.credit = self.credit.saturating_sub(i128::from(bytes).saturating_mul(PARTS));
        }
    }

    /// Returns the time from the last look until a piece may be sent.
    #[must_use]
    pub fn wait(&self) -> Duration {
        let Some(rate) = self.rate.filter(|_| self.credit <= 0) else { return Duration::ZERO };
        let nanoseconds = self.credit.unsigned_abs() / u128::from(rate) + 1;
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    /// Changes the rate from `now` on. None: no limit.
    pub fn set_rate(&mut self, bytes_per_second: Option<u64>, now: Duration) {
        self.fill(now);
        self.rate = bytes_per_second.map(|rate| rate.max(1));
        self.credit = self.credit.min(self.most());
    }

    /// Returns the bytes that the link carries in `time`. None: no limit.
    #[must_use]
    pub fn in_time(&self, time: Duration) -> Option<u64> {
        let bytes = u128::from(self.rate?).saturating_mul(time.as_nanos()) / PARTS.unsigned_abs();
        Some(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// Returns the rate, in bytes a second. None: no limit.
    #[must_use]
    pub fn rate(&self) -> Option<u64> {
        self.rate
    }
}

fn nanoseconds(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_large_piece_passes_and_the_next_one_waits_until_it_is_paid() {
        let mut link = Allowance::new(Some(1000), MS);
        assert!(link.has_any(MS), "an idle link takes a piece of any size");
        link.take(550);
        assert!(!link.has_any(MS));
        assert_eq!((link.wait(), link.owed()), (MS * 500 + Duration::from_nanos(1), 500));
        assert!(!link.has_any(MS * 501) && link.has_any(MS * 502));
        assert_eq!(link.owed(), 0);
        // An hour of silence saves no more than 50 ms of the rate.
        assert!(link.has_any(Duration::from_hours(1)));
        link.take(51);
        assert!(!link.has_any(Duration::from_hours(1)));
    }

    #[test]
    fn a_new_rate_holds_at_once_and_a_clock_that_stands_gives_nothing() {
        let mut link = Allowance::new(Some(1000), MS);
        link.take(1050);
        link.set_rate(Some(10_000), MS);
        assert_eq!(link.wait(), MS * 100 + Duration::from_nanos(1));
        assert!(!link.has_any(Duration::ZERO));
        link.set_rate(Some(0), MS);
        assert_eq!(link.rate(), Some(1), "a rate of zero would wait for ever");
    }

    #[test]
    fn a_link_without_a_limit_always_has_some_and_owes_nothing_later() {
        let mut link = Allowance::new(None, MS);
        link.take(1 << 40);
        assert_eq!((link.has_any(MS), link.wait(), link.in_time(MS)), (true, Duration::ZERO, None));
        link.set_rate(Some(1000), MS);
        assert_eq!(link.wait(), Duration::from_nanos(1), "nothing is saved and nothing owed");
        link.take(1050);
        link.set_rate(None, MS);
        assert!(link.has_any(MS));
    }
}
