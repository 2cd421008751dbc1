//! The distribution of a time in constant memory. Minimum, mean and maximum are exact, and percentiles are within 3 %.
//!
//! It is a histogram of microseconds with 32 steps to every doubling. The code is our own, because the existing library
//! has no infallible constructor.

use std::time::Duration;

use serde::Serialize;

/// Steps to every doubling, as a power of two.
const STEP_BITS: u32 = 5;
const STEPS: u64 = 1 << STEP_BITS;
/// Each value below this has a bucket of its own.
const EXACT_BELOW: u64 = 2 * STEPS;

/// Collects times.
#[derive(Clone, Debug)]
pub struct Spread {
    /// Grows to the highest bucket in use; the longest representable time needs 1,920 buckets.
    buckets: Vec<u64>,
    count: u64,
    total: Duration,
    least: Duration,
    most: Duration,
}

impl Default for Spread {
    fn default() -> Self {
        Self { buckets: Vec::new(), count: 0, total: Duration::ZERO, least: Duration::MAX, most: Duration::ZERO }
    }
}

impl Spread {
    /// Adds one observation.
    pub fn record(&mut self, time: Duration) {
        let index = bucket_of(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        if self.buckets.len() <= index {
            self.buckets.resize(index + 1, 0);
        }
        if let Some(bucket) = self.buckets.get_mut(index) {
            *bucket += 1;
        }
        self.count += 1;
        self.total = self.total.saturating_add(time);
        self.least = self.least.min(time);
        self.most = self.most.max(time);
    }

    /// Returns the distribution in five numbers, or `None` without observations.
    pub fn summary(&self) -> Option<Summary> {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let percentile = |per_mille| millis(self.percentile(per_mille).clamp(self.least, self.most));
        (self.count > 0).then(|| Summary {
            min_ms: millis(self.least),
            mean_ms: millis(self.total) / self.count as f64,
            p50_ms: percentile(500),
            p99_ms: percentile(990),
            max_ms: millis(self.most),
        })
    }

    /// Returns the upper end of the bucket in which the observations reach this share.
    fn percentile(&self, per_mille: u64) -> Duration {
        let wanted = self.count.saturating_mul(per_mille).div_ceil(1_000);
        let mut seen = 0;
        let reached = self.buckets.iter().position(|bucket| {
            seen += bucket;
            seen >= wanted
        });
        Duration::from_micros(reached.map_or(0, upper_end))
    }
}

fn bucket_of(micros: u64) -> usize {
    let index = if micros < EXACT_BELOW {
        micros
    } else {
        // The highest bit gives the doubling, and the STEP_BITS below it give the step within.
        let shift = micros.ilog2() - STEP_BITS;
        u64::from(shift) * STEPS + (micros >> shift)
    };
    usize::try_from(index).unwrap_or(usize::MAX)
}

fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT_BELOW {
        return bucket;
    }
    let shift = bucket / STEPS - 1;
    let step = bucket % STEPS + STEPS;
    ((step + 1) << shift) - 1
}

/// A [`Spread`] in five numbers, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The minimum.
    pub min_ms: f64,
    /// The mean.
    pub mean_ms: f64,
    /// The median.
    pub p50_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The maximum.
    pub max_ms: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_buckets_are_at_most_three_per_cent_wide() {
        for micros in (0..5_000).chain((13..62).map(|bit| (1 << bit) + 12_345)) {
            let bucket = bucket_of(micros);
            assert!(micros <= upper_end(bucket), "{micros}");
            assert!(bucket == 0 || upper_end(bucket - 1) < micros, "{micros}");
            assert!(upper_end(bucket) - micros <= micros / 32, "{micros} is in a bucket up to {}", upper_end(bucket));
        }
    }

    #[test]
    fn the_five_numbers_of_a_hundred_times() {
        let mut spread = Spread::default();
        for millis in 1..=100 {
            spread.record(Duration::from_millis(millis));
        }
        let summary = spread.summary().unwrap();
        assert_eq!((summary.min_ms, summary.mean_ms, summary.max_ms), (1.0, 50.5, 100.0));
        assert!((summary.p50_ms - 50.0).abs() <= 1.6, "{}", summary.p50_ms);
        assert!((summary.p99_ms - 99.0).abs() <= 1.0, "{}", summary.p99_ms);
    }

    #[test]
    fn nothing_observed_is_no_numbers() {
        assert_eq!(Spread::default().summary(), None);
    }
}
