//! The last times of a group, and their median with its confidence interval.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// The number of times that are kept. Older ones make room.
const KEPT: usize = 1000;
/// The number of times from which on a median is shown.
const LEAST: usize = 30;
/// The largest probability that the true median is beyond one end of the interval.
const TAIL: f64 = 0.025;

/// The last times, in microseconds, in the order in which they came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times(VecDeque<u64>);

impl Times {
    /// Adds a time in microseconds.
    pub(crate) fn add(&mut self, time_us: u64) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(time_us);
    }

    /// Returns their median.
    #[must_use]
    pub(crate) fn median(&self) -> Median {
        let mut sorted: Vec<u64> = self.0.iter().copied().collect();
        sorted.sort_unstable();
        let connections = sorted.len();
        let at = |index: usize| sorted.get(index).copied();
        let outer = outside(connections);
        let found = (at((connections / 2).saturating_sub(1 - connections % 2)), at(connections / 2));
        let ends = (at(outer), connections.checked_sub(outer + 1).and_then(at));
        match (found, ends) {
            ((Some(below), Some(above)), (Some(low_us), Some(high_us))) if connections >= LEAST => {
                Median::Known { median_us: below.midpoint(above), low_us, high_us, connections }
            }
            _ => Median::TooFew { connections, needed: LEAST },
        }
    }
}

/// A median in microseconds, with the interval that holds the true one with a probability of 95 % or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Median {
    /// Enough connections show it.
    Known {
        /// The median.
        median_us: u64,
        /// The lower end of the interval.
        low_us: u64,
        /// The upper end of the interval.
        high_us: u64,
        /// The connections.
        connections: usize,
    },
    /// Too few connections.
    TooFew {
        /// The connections.
        connections: usize,
        /// The connections that are needed.
        needed: usize,
    },
}

impl Default for Median {
    fn default() -> Self {
        Self::TooFew { connections: 0, needed: LEAST }
    }
}

impl Median {
    /// Returns the number of connections behind it.
    #[must_use]
    pub(crate) fn connections(&self) -> usize {
        match self {
            Self::Known { connections, .. } | Self::TooFew { connections, .. } => *connections,
        }
    }
}

/// The effect of Longhaul on a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Difference {
    /// A median has too few connections.
    Unknown,
    /// The intervals overlap.
    NoneShown,
    /// The time is shorter with Longhaul.
    Faster {
        /// The difference of the medians in microseconds.
        by_us: u64,
    },
    /// The time is longer with Longhaul.
    Slower {
        /// The difference of the medians in microseconds.
        by_us: u64,
    },
}

impl Difference {
    /// Compares two medians. Intervals that overlap show no difference, even if the medians differ.
    #[must_use]
    pub(crate) fn between(direct: Median, accelerated: Median) -> Self {
        let known = |median| match median {
            Median::Known { median_us, low_us, high_us, .. } => Some((median_us, low_us, high_us)),
            Median::TooFew { .. } => None,
        };
        let (Some(direct), Some(accelerated)) = (known(direct), known(accelerated)) else { return Self::Unknown };
        let by_us = direct.0.abs_diff(accelerated.0);
        if accelerated.2 < direct.1 {
            Self::Faster { by_us }
        } else if accelerated.1 > direct.2 {
            Self::Slower { by_us }
        } else {
            Self::NoneShown
        }
    }
}

/// Returns the number of sorted values below the interval. As many are above it.
///
/// The number of values below the true median has a binomial distribution with probability one half, whatever the
/// distribution of the values. So the interval ends where the probability of fewer such values exceeds [`TAIL`].
fn outside(count: usize) -> usize {
    let Ok(whole) = u32::try_from(count) else { return 0 };
    let mut probability = 0.5_f64.powf(f64::from(whole));
    let mut sum = probability;
    let mut below: u32 = 0;
    while sum <= TAIL && below < whole / 2 {
        probability *= f64::from(whole - below) / f64::from(below + 1);
        sum += probability;
        below += 1;
    }
    // The last step exceeded the probability: `below` values less than the one of it are outside.
    usize::try_from(below.saturating_sub(1)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times(values: impl IntoIterator<Item = u64>) -> Times {
        let mut times = Times::default();
        values.into_iter().for_each(|value| times.add(value));
        times
    }

    #[test]
    fn the_interval_has_the_ranks_of_the_binomial_distribution() {
        // Published tables (Conover, Practical Nonparametric Statistics): ranks from 1.
        for (count, low, high) in [(30, 10, 21), (40, 14, 27), (50, 18, 33), (100, 40, 61), (1000, 469, 532)] {
            let Median::Known { low_us, high_us, connections, .. } = times(1..=count).median() else {
                panic!("no median of {count}");
            };
            assert_eq!((low_us, high_us, connections as u64), (low, high, count));
        }
    }

    #[test]
    fn a_median_needs_thirty_connections_and_holds_the_last_thousand() {
        assert_eq!(times(1..=29).median(), Median::TooFew { connections: 29, needed: 30 });
        let median = |values: &mut dyn Iterator<Item = u64>| match times(values).median() {
            Median::Known { median_us, connections, .. } => (median_us, connections),
            Median::TooFew { .. } => (0, 0),
        };
        assert_eq!(median(&mut (1..=31)), (16, 31));
        assert_eq!(median(&mut (1..=32)), (16, 32));
        assert_eq!(median(&mut (1..=5000)), (4500, 1000));
    }

    #[test]
    fn a_difference_has_a_sign_and_needs_intervals_that_do_not_overlap() {
        let around = |middle: u64| times((0..40).map(|step| middle - 20 + step)).median();
        assert_eq!(Difference::between(around(600), around(50)), Difference::Faster { by_us: 550 });
        assert_eq!(Difference::between(around(50), around(600)), Difference::Slower { by_us: 550 });
        assert_eq!(Difference::between(around(600), around(590)), Difference::NoneShown);
        assert_eq!(Difference::between(around(600), times(1..9).median()), Difference::Unknown);
    }

    proptest! {
        #[test]
        fn the_median_is_within_its_interval(values in proptest::collection::vec(any::<u64>(), 30..200)) {
            let Median::Known { median_us, low_us, high_us, .. } = times(values).median() else {
                return Err(TestCaseError::fail("no median"));
            };
            prop_assert!(low_us <= median_us && median_us <= high_us);
        }
    }
}
