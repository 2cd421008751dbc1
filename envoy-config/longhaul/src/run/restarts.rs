//! Decides when a child that died starts again. It touches no process, and the caller says the time.

use std::time::{Duration, Instant};

/// The waits between restarts. They double from the first to the longest, and start over after a long life.
#[derive(Debug)]
pub(super) struct BackOff {
    next: Duration,
}

const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest of the waits.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The lifetime after which a death no longer counts as a failed start.
const GOOD_WHILE: Duration = Duration::from_secs(30);

impl BackOff {
    pub(super) fn new() -> Self {
        Self { next: FIRST_WAIT }
    }

    /// Returns the wait after a child that lived for `lifetime`.
    pub(super) fn after(&mut self, lifetime: Duration) -> Duration {
        if lifetime >= GOOD_WHILE {
            self.next = FIRST_WAIT;
        }
        let wait = self.next;
        self.next = (wait * 2).min(LONGEST_WAIT);
        wait
    }
}

/// The restarts of one child.
#[derive(Debug)]
pub(super) struct Restarts {
    back_off: BackOff,
    restart_at: Option<Instant>,
    /// True from its death until it responds again.
    recovering: bool,
}

impl Restarts {
    pub(super) fn new() -> Self {
        Self { back_off: BackOff::new(), restart_at: None, recovering: false }
    }

    /// Starts the child for the first time at `now`.
    pub(super) fn due(now: Instant) -> Self {
        Self { restart_at: Some(now), ..Self::new() }
    }

    /// Returns true if it is time to start the child.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.restart_at.is_some_and(|at| now >= at)
    }

    /// Records that the child runs, or is not wanted any more.
    pub(super) fn settled(&mut self) {
        self.restart_at = None;
    }

    /// Records the death of a child that lived for `lifetime`. Returns the wait until the next start.
    pub(super) fn died(&mut self, lifetime: Duration, now: Instant) -> Duration {
        self.recovering = true;
        self.again(lifetime, now)
    }

    /// Records that the child could not be started. Returns the wait until the next start.
    pub(super) fn could_not_start(&mut self, now: Instant) -> Duration {
        self.again(Duration::ZERO, now)
    }

    /// Returns true once if the child responds after a death.
    pub(super) fn has_recovered(&mut self, responds: impl FnOnce() -> bool) -> bool {
        let has_recovered = self.recovering && responds();
        self.recovering &= !has_recovered;
        has_recovered
    }

    fn again(&mut self, lifetime: Duration, now: Instant) -> Duration {
        let wait = self.back_off.after(lifetime);
        self.restart_at = Some(now + wait);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_a_bound_and_start_over_after_a_good_while() {
        let mut back_off = BackOff::new();
        let waits: Vec<u128> = (0..9).map(|_| back_off.after(Duration::ZERO).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(back_off.after(GOOD_WHILE), FIRST_WAIT);
    }
}
