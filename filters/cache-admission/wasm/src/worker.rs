//! State that all streams of a worker share.

use std::cell::RefCell;

use cache_admission::Edit;
use cache_admission::judge::Budget;
use cache_admission::{Config, Table};
use filter_host::headers::{self, Map};
use filter_host::shared::ProxyBoard;
use filter_host::{HostError, random};

use crate::counters::Counters;

/// The filter of one worker at one position.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) config: Config,
    pub(crate) table: Table<ProxyBoard>,
    pub(crate) counters: Counters,
    pub(crate) budget: RefCell<Budget>,
}

impl Worker {
    pub(crate) fn new(config: Config, counters: Counters) -> Self {
        Self { config, table: Table::new(ProxyBoard, random::bytes()), counters, budget: RefCell::default() }
    }
}

pub(crate) fn apply(map: Map, edits: &[Edit]) -> Result<(), HostError> {
    edits.iter().try_for_each(|edit| match edit {
        Edit::Set(name, value) => headers::set(map, name, value),
        Edit::Remove(name) => headers::remove(map, name),
    })
}
