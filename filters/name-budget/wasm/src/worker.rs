//! What all streams of a worker share.

use std::hash::{BuildHasher, RandomState};

use filter_host::metrics::Counter;
use filter_host::shared;
use name_budget::{Board, Budgets, Config, Reason};

/// Values that the proxy keeps for all workers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProxyBoard;

impl Board for ProxyBoard {
    fn get(&self, name: &str) -> (Vec<u8>, u32) {
        shared::get(name).map(|found| (found.value, found.version)).unwrap_or_default()
    }

    fn set(&self, name: &str, value: &[u8], version: u32) -> bool {
        shared::set(name, value, version).unwrap_or(false)
    }
}

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
        // The seed that the standard library asks the host for.
        let half = || RandomState::new().hash_one(0).to_le_bytes();
        let mut drawn = [0; 16];
        for part in drawn.chunks_mut(8) {
            part.copy_from_slice(&half());
        }
        (Self { budgets: Budgets::new(config, ProxyBoard, drawn), counters }, missing)
    }

    pub(crate) fn count(&self, reason: Reason) {
        self.counters.get(reason.index()).copied().unwrap_or_default().add(1);
    }
}
