//! What all streams of a worker share.

use filter_host::metrics::Counter;
use filter_host::random;
use filter_host::shared::ProxyBoard;
use name_budget::{Budgets, Config, Reason};

/// One worker's filter.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) budgets: Budgets<ProxyBoard>,
    counters: Vec<Counter>,
}

impl Worker {
    /// The worker, and the names of the metrics that the host refused.
    pub(crate) fn new(config: &Config) -> (Self, Vec<String>) {
        let mut missing = Vec::new();
        let counters = Reason::ALL.iter().map(|reason| {
            // A label is the tail of the name; the bootstrap's `stats_tags` turn it into one.
            let name = format!("longhaul_name_budget_requests_total_reason_{}", reason.as_str());
            Counter::define(&name).unwrap_or_else(|_| {
                missing.push(name);
                Counter::default()
            })
        });
        let counters = counters.collect();
        (Self { budgets: Budgets::new(config, ProxyBoard, random::bytes()), counters }, missing)
    }

    pub(crate) fn count(&self, reason: Reason) {
        self.counters.get(reason.index()).copied().unwrap_or_default().add(1);
    }
}
