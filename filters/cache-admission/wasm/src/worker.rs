//! What all streams of a worker share.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};

use cache_admission::judge::Budget;
use cache_admission::lesson::Edit;
use cache_admission::{Board, Config, Table};
use filter_host::headers::{self, Map};
use filter_host::{HostError, shared};

use crate::counters::Counters;

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

/// One worker's filter at one position.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) config: Config,
    pub(crate) table: Table<ProxyBoard>,
    pub(crate) counters: Counters,
    pub(crate) budget: RefCell<Budget>,
}

impl Worker {
    pub(crate) fn new(config: Config, counters: Counters) -> Self {
        let mut drawn = [0; 16];
        for part in drawn.chunks_mut(8) {
            // The seed that the standard library asks the host for.
            part.copy_from_slice(&RandomState::new().hash_one(0).to_le_bytes());
        }
        Self { config, table: Table::new(ProxyBoard, drawn), counters, budget: RefCell::default() }
    }
}

pub(crate) fn apply(map: Map, edits: &[Edit]) -> Result<(), HostError> {
    edits.iter().try_for_each(|edit| match edit {
        Edit::Set(name, value) => headers::set(map, name, value),
        Edit::Remove(name) => headers::remove(map, name),
    })
}
