//! The load of the link over time: bytes sent in each slice. Plots use it, and it shows idle round trips.

use std::time::Duration;

use serde::Serialize;

use crate::time::Moment;

/// The most slices; later bytes are not counted. An hour of slices of 100 ms is 36,000.
const MOST_SLICES: usize = 100_000;

/// Bytes by slice of time.
#[derive(Clone, Debug)]
pub struct Timeline {
    slice: Duration,
    since: Moment,
    bytes: Vec<u64>,
}

impl Timeline {
    /// Returns an empty time line that begins at `since`. `slice` must not be zero.
    pub fn new(slice: Duration, since: Moment) -> Self {
        Self { slice: slice.max(Duration::from_nanos(1)), since, bytes: Vec::new() }
    }

    /// Counts a packet whose last bit left at `moment`.
    pub fn add(&mut self, moment: Moment, length_bytes: usize) {
        let index = moment.since(self.since).as_nanos() / self.slice.as_nanos();
        let Some(index) = usize::try_from(index).ok().filter(|index| *index < MOST_SLICES) else { return };
        if self.bytes.len() <= index {
            self.bytes.resize(index + 1, 0);
        }
        if let Some(bytes) = self.bytes.get_mut(index) {
            *bytes += length_bytes as u64;
        }
    }

    /// Restarts at `since`.
    pub fn restart(&mut self, since: Moment) {
        *self = Self::new(self.slice, since);
    }

    /// Returns the time line for the report.
    pub fn report(&self) -> TimelineReport {
        TimelineReport { slice_ms: self.slice.as_secs_f64() * 1e3, bytes: self.bytes.clone() }
    }
}

/// Bytes sent in each slice since counting began. A packet counts in the slice in which its last bit left.
#[derive(Clone, Debug, Serialize)]
pub struct TimelineReport {
    /// Length of a slice in milliseconds.
    pub slice_ms: f64,
    /// Bytes by slice, up to the last packet.
    pub bytes: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn bytes_are_counted_in_the_slice_of_their_moment_and_idle_slices_are_zero() {
        let mut timeline = Timeline::new(Duration::from_millis(100), at(1_000));
        for (millis, bytes) in [(1_000, 10), (1_099, 20), (1_100, 30), (1_450, 40)] {
            timeline.add(at(millis), bytes);
        }
        assert_eq!(timeline.report().bytes, [30, 30, 0, 0, 40]);
        timeline.restart(at(2_000));
        timeline.add(at(2_050), 5);
        assert_eq!(timeline.report().bytes, [5]);
    }

    #[test]
    fn a_moment_beyond_the_last_slice_is_left_out() {
        let mut timeline = Timeline::new(Duration::from_nanos(1), at(0));
        timeline.add(at(1_000), 10);
        assert_eq!(timeline.report().bytes, [0u64; 0]);
    }
}
