//! Counters. They are defined once a configuration, never with foreign text in their names: names live as long as the
//! process.
//!
//! A label is the tail of the name (`..._total_reason_held`); the bootstrap's `stats_tags` turn it into one.

use crate::error::HostError;
use crate::ffi;
use crate::log::{self, Level};

/// The ABI's `counter`.
const COUNTER: u32 = 0;

/// A counter that was defined. Adding to one that was not (by default) does nothing, so that a metric that the host
/// refuses costs only itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counter(Option<u32>);

impl Counter {
    fn define(name: &str) -> Result<Self, HostError> {
        ffi::define_metric(COUNTER, name).map(|id| Self(Some(id)))
    }

    /// Adds `amount`; nothing for 0.
    pub fn add(self, amount: u64) {
        if let (Some(id), 1..) = (self.0, amount) {
            // A count that is lost is no reason to trouble the stream.
            let _ = ffi::increment_metric(id, i64::try_from(amount).unwrap_or(i64::MAX));
        }
    }
}

/// Counters by the index of what they count.
#[derive(Debug, Default)]
pub struct Counters(Vec<Counter>);

impl Counters {
    /// The counter at `index`; one that counts nothing where there is none.
    pub fn at(&self, index: usize) -> Counter {
        self.0.get(index).copied().unwrap_or_default()
    }
}

/// Defines the counters of one filter. The log names those that the host refuses.
#[derive(Debug)]
pub struct Metrics {
    filter: &'static str,
    prefix: String,
}

impl Metrics {
    /// Those of `filter`: their names begin with `longhaul_`, and the filter's name with underscores.
    pub(crate) fn of(filter: &'static str) -> Self {
        let words: Vec<&str> = filter.split('-').collect();
        Self { filter, prefix: format!("longhaul_{}_", words.join("_")) }
    }

    /// The counter `name`, without the prefix.
    pub fn counter(&self, name: &str) -> Counter {
        let name = format!("{}{name}", self.prefix);
        Counter::define(&name).unwrap_or_else(|_| {
            log::write(Level::Warn, &format!("{}: the proxy refused the metric {name}", self.filter));
            Counter::default()
        })
    }

    /// A counter for each of `names`, in their order.
    pub fn counters<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Counters {
        Counters(names.into_iter().map(|name| self.counter(name)).collect())
    }

    /// A counter `NAME_reason_REASON` for each of `reasons`, in their order.
    pub fn by_reason<'r>(&self, name: &str, reasons: impl IntoIterator<Item = &'r str>) -> Counters {
        Counters(reasons.into_iter().map(|reason| self.counter(&format!("{name}_reason_{reason}"))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_that_the_host_refuses_counts_nothing_and_costs_nothing_else() {
        let metrics = Metrics::of("url-rewrite");
        assert_eq!(metrics.prefix, "longhaul_url_rewrite_");
        assert_eq!(metrics.counter("pages_total"), Counter::default());
        let counters = metrics.by_reason("urls_left_total", ["csp", "document"]);
        assert_eq!(counters.0.len(), 2);
        counters.at(1).add(1);
        counters.at(2).add(1);
    }
}
