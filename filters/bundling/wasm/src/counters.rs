//! The filter's metrics, defined once a configuration.
//!
//! A label is the tail of the name (`..._total_reason_late`); the bootstrap's `stats_tags` turn it into one.

use filter_host::metrics::Counter;
use page_flights::{Count, Counts};

/// Every counter of the filter. One that the host would not define counts nothing.
#[derive(Debug, Default)]
pub(crate) struct Counters(Vec<Counter>);

impl Counters {
    /// Defines all of them. The names of those the host refused are returned.
    pub(crate) fn define() -> (Self, Vec<String>) {
        let mut missing = Vec::new();
        let counters = Count::ALL.iter().map(|count| {
            let name = format!("longhaul_bundling_{}", count.name());
            Counter::define(&name).unwrap_or_else(|_| {
                missing.push(name);
                Counter::default()
            })
        });
        (Self(counters.collect()), missing)
    }

    /// Adds what an end has counted since it was asked last.
    pub(crate) fn add(&self, counts: &mut Counts) {
        for (count, amount) in counts.take() {
            self.0.get(count as usize).copied().unwrap_or_default().add(amount);
        }
    }
}
