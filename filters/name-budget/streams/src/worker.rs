//! State that all streams of a worker share.

use filter_host::metrics::{Counters, Metrics};
use filter_host::random;
use filter_host::shared::ProxyBoard;
use name_budget::{Budgets, Config, Reason};

/// The filter of one worker.
#[derive(Debug)]
pub struct Worker {
    pub(crate) budgets: Budgets<ProxyBoard>,
    counters: Counters,
}

impl Worker {
    pub(crate) fn new(config: &Config, metrics: &Metrics) -> Self {
        let counters = metrics.by_reason("requests_total", Reason::ALL.iter().map(|it| it.as_str()));
        Self { budgets: Budgets::new(config, ProxyBoard, random::bytes()), counters }
    }

    pub(crate) fn count(&self, reason: Reason) {
        self.counters.at(reason.index()).add(1);
    }
}
