//! The time to look at changed files. Files that belong together seldom change at one instant, so a look waits until it is
//! quiet. A busy folder is never quiet, so the wait is bounded.

use std::time::{Duration, Instant};

/// Files that change together are looked at together.
const QUIET: Duration = Duration::from_millis(200);
/// A change waits at most this long for quiet. Logs and editors' copies beside the configuration must not delay it.
const LONGEST: Duration = Duration::from_secs(2);

/// Changes that were seen and not yet looked at.
#[derive(Debug, Default)]
pub(super) struct Debounce {
    /// The first and the last of them.
    seen: Option<(Instant, Instant)>,
}

impl Debounce {
    /// Something changed.
    pub(super) fn changed(&mut self, now: Instant) {
        let first = self.seen.map_or(now, |(first, _)| first);
        self.seen = Some((first, now));
    }

    /// Returns whether it is time to look.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.seen.is_some_and(|(first, last)| {
            now.saturating_duration_since(last) >= QUIET || now.saturating_duration_since(first) >= LONGEST
        })
    }

    /// Everything seen so far was looked at.
    pub(super) fn looked(&mut self) {
        self.seen = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_looked_at_together_once_it_is_quiet() {
        let start = Instant::now();
        let mut settling = Debounce::default();
        assert!(!settling.is_due(start + LONGEST), "nothing changed");
        settling.changed(start);
        settling.changed(start + QUIET / 2);
        assert!(!settling.is_due(start + QUIET));
        assert!(settling.is_due(start + QUIET / 2 + QUIET));
        settling.looked();
        assert!(!settling.is_due(start + LONGEST));
    }

    #[test]
    fn a_folder_that_is_never_quiet_delays_a_change_by_two_seconds_at_most() {
        let start = Instant::now();
        let mut settling = Debounce::default();
        let busy = (0..).map(|n| start + n * QUIET / 4);
        let due = busy.clone().find(|now| {
            settling.changed(*now);
            settling.is_due(*now)
        });
        assert_eq!(due, Some(start + LONGEST));
    }
}
