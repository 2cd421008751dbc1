//! State that all streams of a worker share.

use filter_host::metrics::Metrics;
use filter_host::shared::ProxyBoard;
use filter_host::{counters, random};
use name_budget::{Budgets, Config, Reason};

counters! {
    /// Every counter of the filter.
    Counters {
        requests "requests_total" by reason Reason, "requests and connections before their name is looked up ([reasons](../filters/name-budget/README.md#outcomes))";
    }
}

/// The filter of one worker.
#[derive(Debug)]
pub struct Worker {
    pub(crate) budgets: Budgets<ProxyBoard>,
    counters: Counters,
}

impl Worker {
    pub(crate) fn new(config: &Config, metrics: &Metrics) -> Self {
        Self { budgets: Budgets::new(config, ProxyBoard, random::bytes()), counters: Counters::define(metrics) }
    }

    pub(crate) fn count(&self, reason: Reason) {
        self.counters.requests.at(reason.index()).add(1);
    }
}

#[cfg(test)]
mod tests {
    use filter_host::tables;

    use super::Counters;

    #[test]
    fn the_table_of_the_document_has_every_counter() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../envoy-config/METRICS.md");
        tables::check(path, "counters of name-budget", &Counters::table("longhaul_name_budget_")).unwrap();
    }
}
