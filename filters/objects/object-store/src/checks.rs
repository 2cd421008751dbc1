//! Which blocks of sliced bodies this process has written or checked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most objects whose checked blocks are remembered. If they are exceeded, all are forgotten: that costs reads.
const MOST_CHECKED: usize = 1024;

/// The blocks of an object.
#[derive(Debug, Default)]
pub(crate) struct Checked(Mutex<Vec<u64>>);

impl Checked {
    fn bits(&self) -> MutexGuard<'_, Vec<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(block: u64) -> (usize, u64) {
        (usize::try_from(block / 64).unwrap_or(usize::MAX), 1 << (block % 64))
    }

    pub(crate) fn has(&self, block: u64) -> bool {
        let (word, bit) = Self::place(block);
        self.bits().get(word).is_some_and(|bits| bits & bit != 0)
    }

    pub(crate) fn add(&self, block: u64) {
        let (word, bit) = Self::place(block);
        let mut bits = self.bits();
        if bits.len() <= word {
            bits.resize(word.saturating_add(1), 0);
        }
        if let Some(bits) = bits.get_mut(word) {
            *bits |= bit;
        }
    }
}

/// The checked blocks of objects by their stamp. They outlive the open file.
#[derive(Debug, Default)]
pub(crate) struct Checks(Mutex<HashMap<u64, Arc<Checked>>>);

impl Checks {
    pub(crate) fn of(&self, stamp: u64) -> Arc<Checked> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_CHECKED && !known.contains_key(&stamp) {
            known.clear();
        }
        Arc::clone(known.entry(stamp).or_default())
    }
}
