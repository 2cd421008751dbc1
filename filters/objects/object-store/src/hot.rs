//! Small responses in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::files::Version;
use crate::key::Key;
use crate::object::{Body, Object};

/// Memory of an entry besides its bytes: the object, its allocations, and its places in the map and the list.
const ENTRY: u64 = 400;
/// How often the use of a response is noted where other processes see it.
pub(crate) const NOTE_EVERY: Duration = Duration::from_mins(1);
/// Memory of a field besides its bytes: two vectors.
const FIELD: u64 = 64;

#[derive(Debug)]
struct Slot {
    object: Arc<Object>,
    version: Version,
    weight: u64,
    is_used: bool,
    noted: Instant,
}

#[derive(Debug, Default)]
struct Ring {
    at: HashMap<Key, usize>,
    slots: Vec<Slot>,
    hand: usize,
    bytes: u64,
}

/// Responses in memory, bounded by bytes. Those that were not used for a turn of a clock go first.
#[derive(Debug)]
pub(crate) struct Hot {
    max_bytes: u64,
    ring: Mutex<Ring>,
}

impl Hot {
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self { max_bytes, ring: Mutex::default() }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a response, and the version of the file that it was read from. The last value is true each [`NOTE_EVERY`].
    pub(crate) fn get(&self, key: Key) -> Option<(Arc<Object>, Version, bool)> {
        let mut ring = self.ring();
        let at = *ring.at.get(&key)?;
        let slot = ring.slots.get_mut(at)?;
        slot.is_used = true;
        let is_due = slot.noted.elapsed() >= NOTE_EVERY;
        if is_due {
            slot.noted = Instant::now();
        }
        Some((Arc::clone(&slot.object), slot.version, is_due))
    }

    /// Keeps a response, instead of an older one. One whose body lies in a file is not kept.
    pub(crate) fn put(&self, object: &Arc<Object>, version: Version) {
        let mut ring = self.ring();
        ring.remove(object.key);
        let Some(weight) = weight(object).filter(|weight| *weight <= self.max_bytes) else { return };
        while ring.bytes.saturating_add(weight) > self.max_bytes {
            let Some(cold) = ring.coldest() else { return };
            ring.remove(cold);
        }
        let at = ring.slots.len();
        ring.at.insert(object.key, at);
        ring.slots.push(Slot { object: Arc::clone(object), version, weight, is_used: false, noted: Instant::now() });
        ring.bytes = ring.bytes.saturating_add(weight);
    }

    /// Forgets a response.
    pub(crate) fn remove(&self, key: Key) {
        self.ring().remove(key);
    }

    /// Returns the bytes of all responses in memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.ring().bytes
    }
}

impl Ring {
    fn remove(&mut self, key: Key) {
        let Some(at) = self.at.remove(&key).filter(|at| *at < self.slots.len()) else { return };
        let slot = self.slots.swap_remove(at);
        self.bytes = self.bytes.saturating_sub(slot.weight);
        if let Some(moved) = self.slots.get(at) {
            self.at.insert(moved.object.key, at);
        }
    }

    fn coldest(&mut self) -> Option<Key> {
        // Two turns: the first one may find every response used.
        for _ in 0..self.slots.len().saturating_mul(2) {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            let slot = self.slots.get_mut(self.hand)?;
            // The newest response moves to the place of the removed one. The hand reaches it after all others.
            self.hand += 1;
            if !std::mem::take(&mut slot.is_used) {
                return Some(slot.object.key);
            }
        }
        None
    }
}

fn weight(object: &Object) -> Option<u64> {
    let Body::Memory(body) = &object.body else { return None };
    let fields = object.head.fields.iter().map(|(name, value)| (name.len() + value.len()) as u64 + FIELD);
    let names = object.head.vary.iter().map(|name| name.len() as u64 + FIELD);
    Some(ENTRY + (body.len() + object.head.url.len()) as u64 + fields.sum::<u64>() + names.sum::<u64>())
}
