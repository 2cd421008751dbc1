//! The time of a run. Orders of effects that wait take it from here, so that a simulation can run them too.

use std::thread;
use std::time::{Duration, Instant};

/// The present time, and a way to let it pass.
pub(super) trait Clock {
    /// Returns the present time.
    fn now(&self) -> Instant;

    /// Waits.
    fn pause(&mut self, time: Duration);
}

/// The clock of this machine, which never steps back.
#[derive(Debug, Clone, Copy)]
pub(super) struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn pause(&mut self, time: Duration) {
        thread::sleep(time);
    }
}
