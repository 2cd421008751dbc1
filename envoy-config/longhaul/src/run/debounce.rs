//! The time to check changed files. Files that belong together seldom change at the same instant, so a check waits
//! until no more changes come. A busy folder is never quiet, so the wait is bounded.

use std::time::{Duration, Instant};

/// The time without changes before a check. Files that change together are then checked together.
const QUIET: Duration = Duration::from_millis(200);
/// The longest wait of a change. Logs and editors' copies beside the configuration must not delay it.
const LONGEST: Duration = Duration::from_secs(2);

/// Changes that were seen and not checked yet.
#[derive(Debug, Default)]
pub(super) struct Debounce {
    /// The times of the first and the last of them.
    seen: Option<(Instant, Instant)>,
}

impl Debounce {
    /// Records a change.
    pub(super) fn changed(&mut self, now: Instant) {
        let first = self.seen.map_or(now, |(first, _)| first);
        self.seen = Some((first, now));
    }

    /// Returns true if it is time to check.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.seen.is_some_and(|(first, last)| {
            now.saturating_duration_since(last) >= QUIET || now.saturating_duration_since(first) >= LONGEST
        })
    }

    /// Records that everything seen so far was checked.
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
