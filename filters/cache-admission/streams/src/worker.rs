//! State that all streams of a worker share.

use std::cell::RefCell;

use cache_admission::judge::Budget;
use cache_admission::{Position, Table};
use filter_host::random;
use filter_host::shared::ProxyBoard;

use crate::counters::Counters;

/// The filter of one worker at one position.
#[derive(Debug)]
pub struct Worker {
    pub(crate) position: Position,
    pub(crate) table: Table<ProxyBoard>,
    pub(crate) counters: Counters,
    pub(crate) budget: RefCell<Budget>,
}

impl Worker {
    pub(crate) fn new(position: Position, counters: Counters) -> Self {
        Self { position, table: Table::new(ProxyBoard, random::bytes()), counters, budget: RefCell::default() }
    }
}
