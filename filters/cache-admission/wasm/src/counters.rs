//! The filter's metrics, defined once a configuration.
//!
//! A label is the tail of the name (`..._total_reason_held`); the bootstrap's `stats_tags` turn it into one.

use cache_admission::judge::Ruling;
use cache_admission::lesson::Taught;
use cache_admission::request::Reason;
use filter_host::metrics::Counter;

/// Every counter of the filter. One that the host would not define counts nothing.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    requests: Vec<Counter>,
    taught: Vec<Counter>,
    judged: Vec<Counter>,
    broken_off: Counter,
}

impl Counters {
    /// Defines all of them. The names of those the host refused are returned.
    pub(crate) fn define() -> (Self, Vec<String>) {
        let mut missing = Vec::new();
        let mut counter = |name: String| {
            let name = format!("longhaul_cache_admission_{name}");
            Counter::define(&name).unwrap_or_else(|_| {
                missing.push(name);
                Counter::default()
            })
        };
        let counters = Self {
            requests: Reason::ALL.iter().map(|it| counter(format!("requests_total_reason_{}", it.as_str()))).collect(),
            taught: Taught::ALL.iter().map(|it| counter(format!("lessons_total_reason_{}", it.as_str()))).collect(),
            judged: Ruling::ALL.iter().map(|it| counter(format!("judged_total_reason_{}", it.as_str()))).collect(),
            broken_off: counter("broken_off_total".to_owned()),
        };
        (counters, missing)
    }

    pub(crate) fn request(&self, reason: Reason) {
        add(&self.requests, reason.index());
    }

    pub(crate) fn taught(&self, taught: Taught) {
        add(&self.taught, taught.index());
    }

    pub(crate) fn judged(&self, ruling: Ruling) {
        add(&self.judged, ruling.index());
    }

    pub(crate) fn broken_off(&self) {
        self.broken_off.add(1);
    }
}

fn add(counters: &[Counter], index: usize) {
    counters.get(index).copied().unwrap_or_default().add(1);
}
