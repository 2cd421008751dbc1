//! The filter's metrics, defined once for each configuration.

use cache_admission::judge::Ruling;
use filter_host::metrics::{self, Counter, Metrics};

/// Every counter of the filter.
#[derive(Debug)]
pub(crate) struct Counters {
    judged: metrics::Counters,
    broken_off: Counter,
}

impl Counters {
    /// Defines all counters.
    pub(crate) fn define(metrics: &Metrics) -> Self {
        Self {
            judged: metrics.by_reason("judged_total", Ruling::ALL.iter().map(|it| it.as_str())),
            broken_off: metrics.counter("broken_off_total"),
        }
    }

    pub(crate) fn judged(&self, ruling: Ruling) {
        self.judged.at(ruling.index()).add(1);
    }

    pub(crate) fn broken_off(&self) {
        self.broken_off.add(1);
    }
}
