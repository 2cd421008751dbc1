//! The filter's metrics, defined once for each configuration.

use filter_host::metrics::{self, Metrics};
use page_flights::{Count, Counts};

/// Every counter of the filter.
#[derive(Debug)]
pub(crate) struct Counters(metrics::Counters);

impl Counters {
    /// Defines every counter.
    pub(crate) fn define(metrics: &Metrics) -> Self {
        Self(metrics.counters(Count::ALL.iter().map(|count| count.as_str())))
    }

    /// Adds the counts since the last call.
    pub(crate) fn add(&self, counts: &mut Counts) {
        for (count, amount) in counts.take() {
            self.0.at(count as usize).add(amount);
        }
    }
}
