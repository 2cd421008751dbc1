//! The emulator's own time line.
//!
//! The core never reads a clock: every call receives the current time. So tests run an hour of a slow link in a
//! millisecond, and a run can be repeated.

use std::ops::Add;
use std::time::Duration;

/// A point in time, in whole nanoseconds after the emulator's start. The range is 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The emulator's start.
    pub const START: Self = Self(0);

    /// Returns the moment this many nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the moment `offset` after the start, or the last representable one if `offset` is too long.
    pub fn after_start(offset: Duration) -> Self {
        Self(u64::try_from(offset.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }
}
