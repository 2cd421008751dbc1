//! Histograms of times in Prometheus' format, as Envoy and CoreDNS write them.

use std::collections::BTreeMap;

use crate::scrape::Scrape;

/// The bound of the last bucket, `+Inf`.
const UNBOUNDED: u64 = u64::MAX;

/// Counts of times up to bounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Histogram {
    /// The number of times up to a bound, by the bound in microseconds.
    up_to: BTreeMap<u64, u64>,
}

impl Histogram {
    /// Reads the histogram `name`, whose unit is `unit_us` microseconds, over the samples whose labels satisfy `holds`.
    pub(crate) fn of(
        scrape: &Scrape,
        name: &str,
        unit_us: f64,
        holds: impl Fn(&dyn Fn(&str) -> Option<String>) -> bool,
    ) -> Self {
        let buckets = scrape.values_where(&format!("{name}_bucket"), "le", holds);
        let up_to = buckets.into_iter().filter_map(|(bound, count)| Some((micros(&bound, unit_us)?, count))).collect();
        Self { up_to }
    }

    /// Returns the times since `before`. A program that has started again counts from zero.
    #[must_use]
    pub(crate) fn since(&self, before: &Self) -> Self {
        if self.count() < before.count() {
            return self.clone();
        }
        let before = |bound: &u64| before.up_to.get(bound).copied().unwrap_or(0);
        Self { up_to: self.up_to.iter().map(|(bound, count)| (*bound, count.saturating_sub(before(bound)))).collect() }
    }

    /// Returns the number of times.
    #[must_use]
    pub(crate) fn count(&self) -> u64 {
        self.up_to.values().max().copied().unwrap_or(0)
    }

    /// Returns the median in microseconds. Times within a bucket count as evenly spread. None without times.
    #[must_use]
    pub(crate) fn median_us(&self) -> Option<u64> {
        let half = self.count().div_ceil(2).max(1);
        let (mut low, mut below) = (0, 0);
        for (bound, count) in &self.up_to {
            if *count >= half {
                // Nothing is known of times beyond the last bound.
                let high = if *bound == UNBOUNDED { low } else { *bound };
                return Some(low + (high - low) * (half - below) / (count - below).max(1));
            }
            (low, below) = (*bound, *count);
        }
        None
    }
}

/// Returns a bound in microseconds.
fn micros(bound: &str, unit_us: f64) -> Option<u64> {
    if bound == "+Inf" {
        return Some(UNBOUNDED);
    }
    let bound: f64 = bound.parse().ok()?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounds are not negative, and of hours")]
    let micros = (bound.max(0.0) * unit_us) as u64;
    Some(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(counts: &[(&str, u64)]) -> Histogram {
        let lines: Vec<String> =
            counts.iter().map(|(bound, count)| format!("t_bucket{{le=\"{bound}\"}} {count}\n")).collect();
        let text = lines.concat();
        Histogram::of(&Scrape::parse(&text), "t", 1000.0, |_| true)
    }

    #[test]
    fn a_median_lies_within_its_bucket() {
        let times = milliseconds(&[("0.5", 0), ("100", 0), ("250", 4), ("+Inf", 4)]);
        assert_eq!((times.count(), times.median_us()), (4, Some(175_000)));
        assert_eq!(milliseconds(&[("100", 0), ("+Inf", 3)]).median_us(), Some(100_000), "beyond the last bound");
        assert_eq!(milliseconds(&[("100", 0), ("+Inf", 0)]).median_us(), None);
        assert_eq!(Histogram::default().median_us(), None);
    }

    #[test]
    fn times_between_two_readings_count_and_a_restart_begins_anew() {
        let before = milliseconds(&[("1", 90), ("250", 90), ("+Inf", 90)]);
        let after = milliseconds(&[("1", 90), ("250", 94), ("+Inf", 94)]);
        assert_eq!(after.since(&before).count(), 4);
        assert!(after.since(&before).median_us() > Some(1000));
        assert_eq!(milliseconds(&[("1", 2), ("+Inf", 2)]).since(&before).count(), 2);
    }

    #[test]
    fn samples_of_several_labels_are_one_histogram() {
        let text =
            "t_bucket{of=\"a\",le=\"0.001\"} 1\nt_bucket{of=\"b\",le=\"0.001\"} 2\nt_bucket{of=\"c\",le=\"0.001\"} 4\n";
        let wanted = Histogram::of(&Scrape::parse(text), "t", 1e6, |of| of("of").as_deref() != Some("c"));
        assert_eq!((wanted.count(), wanted.median_us()), (3, Some(666)));
    }
}
