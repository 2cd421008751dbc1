//! The filter's metrics, defined once for each configuration.

use cache_admission::judge::Ruling;
use cache_admission::lesson::Taught;
use cache_admission::request::Reason;
use filter_host::metrics::{self, Counter, Metrics};

/// Every counter of the filter.
#[derive(Debug)]
pub(crate) struct Counters {
    requests: metrics::Counters,
    taught: metrics::Counters,
    judged: metrics::Counters,
    broken_off: Counter,
}

impl Counters {
    /// Defines all counters.
    pub(crate) fn define(metrics: &Metrics) -> Self {
        Self {
            requests: metrics.by_reason("requests_total", Reason::ALL.iter().map(|it| it.as_str())),
            taught: metrics.by_reason("lessons_total", Taught::ALL.iter().map(|it| it.as_str())),
            judged: metrics.by_reason("judged_total", Ruling::ALL.iter().map(|it| it.as_str())),
            broken_off: metrics.counter("broken_off_total"),
        }
    }

    pub(crate) fn request(&self, reason: Reason) {
        self.requests.at(reason.index()).add(1);
    }

    pub(crate) fn taught(&self, taught: Taught) {
        self.taught.at(taught.index()).add(1);
    }

    pub(crate) fn judged(&self, ruling: Ruling) {
        self.judged.at(ruling.index()).add(1);
    }

    pub(crate) fn broken_off(&self) {
        self.broken_off.add(1);
    }
}
