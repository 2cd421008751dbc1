//! Which files there are, and how many bytes they take: about 60 bytes of memory for each.
//!
//! The index only decides what is removed. Lookups do not need it.

use std::collections::HashMap;

use crate::key::Key;

/// Sizes are counted in sectors, so that 32 bits reach 2 TiB.
const SECTOR: u64 = 512;

#[derive(Debug)]
struct Slot {
    key: Key,
    sectors: u32,
    /// True if the entry was found since the hand of the clock passed it.
    is_used: bool,
}

/// The files by key, in the order in which the hand of a clock passes them.
#[derive(Debug, Default)]
pub(crate) struct Index {
    at: HashMap<Key, u32>,
    slots: Vec<Slot>,
    hand: usize,
    sectors: u64,
}

impl Index {
    /// Adds an entry, or changes its size. An index of 4 billion entries stays as it is.
    pub(crate) fn set(&mut self, key: Key, bytes: u64) {
        let sectors = u32::try_from(bytes.div_ceil(SECTOR)).unwrap_or(u32::MAX);
        if let Some(slot) = self.slot(key) {
            let before = std::mem::replace(&mut slot.sectors, sectors);
            self.sectors = self.sectors.saturating_sub(before.into()).saturating_add(sectors.into());
        } else if let Ok(at) = u32::try_from(self.slots.len()) {
            self.at.insert(key, at);
            self.slots.push(Slot { key, sectors, is_used: false });
            self.sectors = self.sectors.saturating_add(sectors.into());
        }
    }

    fn slot(&mut self, key: Key) -> Option<&mut Slot> {
        let at = *self.at.get(&key)?;
        self.slots.get_mut(at as usize)
    }

    /// Notes a use. Returns false for an unknown entry.
    pub(crate) fn touch(&mut self, key: Key) -> bool {
        self.slot(key).map(|slot| slot.is_used = true).is_some()
    }

    /// Returns true if the entry is known.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.at.contains_key(&key)
    }

    /// Forgets an entry.
    pub(crate) fn remove(&mut self, key: Key) {
        let Some(at) = self.at.remove(&key) else { return };
        if at as usize >= self.slots.len() {
            return;
        }
        let slot = self.slots.swap_remove(at as usize);
        self.sectors = self.sectors.saturating_sub(slot.sectors.into());
        if let Some(moved) = self.slots.get(at as usize) {
            self.at.insert(moved.key, at);
        }
    }

    /// Chooses the entry to remove next: one that was not used for a turn of the clock. Skips those that `is_pinned`
    /// names. `None` if nothing is left.
    pub(crate) fn victim(&mut self, is_pinned: impl Fn(Key) -> bool) -> Option<Key> {
        // Two turns: the first one may find every entry used.
        for _ in 0..self.slots.len().saturating_mul(2) {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            let slot = self.slots.get_mut(self.hand)?;
            // The newest entry moves to the place of the removed one. The hand reaches it after all others.
            self.hand += 1;
            if !std::mem::take(&mut slot.is_used) && !is_pinned(slot.key) {
                return Some(slot.key);
            }
        }
        None
    }

    /// Returns how many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the bytes on disk of all entries.
    pub(crate) fn bytes(&self) -> u64 {
        self.sectors.saturating_mul(SECTOR)
    }

    /// Returns the memory that the index takes: a control byte of the map for each place in it, besides the entry.
    #[cfg(test)]
    fn memory(&self) -> usize {
        let places = self.at.capacity().saturating_mul(8) / 7;
        self.slots.capacity() * size_of::<Slot>() + places * (size_of::<(Key, u32)>() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Key {
        Key::of_url(b"", b"", &number.to_le_bytes())
    }

    #[test]
    fn an_entry_takes_less_than_a_hundred_bytes_of_memory() {
        let mut index = Index::default();
        for number in 0..100_000 {
            index.set(key(number), 4096);
            if number > 1000 {
                assert!(index.memory() < 100 * index.len(), "{number}");
            }
        }
        assert!(index.memory() < 80 * 100_000, "{}", index.memory());
    }

    #[test]
    fn sizes_add_up_and_an_entry_may_change_its_size() {
        let mut index = Index::default();
        index.set(key(1), 4096);
        index.set(key(2), 513);
        assert_eq!(index.bytes(), 4096 + 1024);
        index.set(key(1), 512);
        index.remove(key(2));
        index.remove(key(2));
        assert_eq!((index.bytes(), index.len()), (512, 1));
        assert!(index.touch(key(1)) && !index.touch(key(2)));
    }

    #[test]
    fn an_entry_that_was_used_outlives_those_that_were_not() {
        let mut index = Index::default();
        for number in 0..10 {
            index.set(key(number), 512);
        }
        index.touch(key(3));
        for _ in 0..9 {
            let victim = index.victim(|_| false).unwrap();
            assert_ne!(victim, key(3));
            index.remove(victim);
        }
        assert_eq!(index.victim(|_| false), Some(key(3)));
        assert_eq!(index.victim(|_| true), None);
    }

    #[test]
    fn a_full_index_takes_in_new_entries() {
        let mut index = Index::default();
        for number in 0..10 {
            index.set(key(number), 512);
        }
        for number in 10..20 {
            let victim = index.victim(|_| false).unwrap();
            index.remove(victim);
            index.set(key(number), 512);
        }
        let old = (0..10).filter(|number| index.has(key(*number))).count();
        assert!(old <= 3 && index.has(key(19)), "{old}");
    }
}
