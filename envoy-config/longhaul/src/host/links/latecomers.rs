//! Connections that were being opened while the first endpoint was made.
//!
//! The kernel opens further subflows of a connection at two times. Either the connection is established, and there was an
//! endpoint when its socket was made. Or an endpoint is made, and the connection is established by then. A connection whose
//! socket was there before the first endpoint, and whose first response came after it, misses both. It has one subflow for
//! life, and stands still for as long as this link is down. Then it gets the standby alone, and stays there. At a start of the
//! box, that is the pipe itself.
//!
//! So the kernel is made to look again for a while ([`setup::look_again`](super::setup::look_again)).

use std::time::Duration;

/// The time after the first endpoint for which a connection may still be opened: Envoy gives one up after 5 s, ten round
/// trips and the time in a full queue.
const OPENING: Duration = Duration::from_secs(30);

/// Decides when the kernel has to look again. It knows no clock.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Latecomers {
    /// The time when the first endpoint was made. None: there is no endpoint, or all such connections are done.
    first: Option<Duration>,
}

impl Latecomers {
    /// Notes the number of endpoints before and after a change.
    pub(super) fn changed(&mut self, now: Duration, before: usize, after: usize) {
        if after == 0 {
            self.first = None;
        } else if before == 0 {
            self.first = Some(now);
        }
    }

    /// Returns true if the kernel has to look again. Call it once a second.
    pub(super) fn are_due(&mut self, now: Duration) -> bool {
        let due = self.first.is_some_and(|first| now.saturating_sub(first) <= OPENING);
        if !due {
            self.first = None;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_kernel_looks_again_for_as_long_as_connections_may_be_opened_from_before_the_first_endpoint() {
        let mut late = Latecomers::default();
        let due = |late: &mut Latecomers, from: u64| (from..from + 100).filter(|at| late.are_due(s(*at))).count();
        assert_eq!(due(&mut late, 0), 0, "there is no endpoint");
        late.changed(s(100), 0, 2);
        assert_eq!(due(&mut late, 100), 31);
        // A link died and came back: sockets were made with an endpoint at all times.
        late.changed(s(300), 2, 1);
        late.changed(s(310), 1, 2);
        assert_eq!(due(&mut late, 310), 0);
        // All links lost their addresses.
        late.changed(s(500), 2, 0);
        assert_eq!(due(&mut late, 500), 0);
        late.changed(s(600), 0, 1);
        assert!(late.are_due(s(600)));
    }
}
