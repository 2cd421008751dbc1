//! Facts that a worker learned about objects, in a bounded table. The oldest entry makes room for the newest.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

use crate::limits::{BELIEVED_MS, LEFT_ALONE_MS, REMEMBERED};

/// A fact about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// This very object is cached.
    Held,
    /// This very object could not be fetched.
    LeftAlone,
    /// Caches store the objects of this path, with any query.
    Kept,
    /// They do not.
    NotKept,
}

/// The table finds entries by keyed hashes, so that no site can choose URLs that stand for those of another.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    entries: HashMap<u64, (Known, u64)>,
    order: VecDeque<u64>,
    keys: RandomState,
}

impl Memory {
    /// Returns the fact about this object at `now_ms`. A fact about itself goes before one about its path.
    pub(crate) fn of(&self, scheme: &str, authority: &str, path: &str, now_ms: u64) -> Option<Known> {
        let alive = |key| self.entries.get(&key).filter(|(_, until)| *until > now_ms).map(|(known, _)| *known);
        alive(self.object(scheme, authority, path)).or_else(|| alive(self.place(scheme, authority, path)))
    }

    /// Records that the object is cached for `fresh_ms` from now on.
    pub(crate) fn held(&mut self, scheme: &str, authority: &str, path: &str, fresh_ms: u64, now_ms: u64) {
        let object = self.object(scheme, authority, path);
        self.put(object, Known::Held, now_ms.saturating_add(fresh_ms.min(BELIEVED_MS)));
        self.kept(scheme, authority, path, now_ms);
    }

    /// Records that caches store objects of the path.
    pub(crate) fn kept(&mut self, scheme: &str, authority: &str, path: &str, now_ms: u64) {
        let place = self.place(scheme, authority, path);
        self.put(place, Known::Kept, now_ms.saturating_add(BELIEVED_MS));
    }

    /// Records that the cache does not store objects of the path.
    pub(crate) fn not_kept(&mut self, scheme: &str, authority: &str, path: &str, now_ms: u64) {
        let place = self.place(scheme, authority, path);
        self.put(place, Known::NotKept, now_ms.saturating_add(BELIEVED_MS));
    }

    /// Records that the object could not be fetched.
    pub(crate) fn leave_alone(&mut self, scheme: &str, authority: &str, path: &str, now_ms: u64) {
        let object = self.object(scheme, authority, path);
        self.put(object, Known::LeftAlone, now_ms.saturating_add(LEFT_ALONE_MS));
    }

    fn put(&mut self, key: u64, known: Known, until_ms: u64) {
        if self.entries.insert(key, (known, until_ms)).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.entries.remove(&oldest);
        }
    }

    fn object(&self, scheme: &str, authority: &str, path: &str) -> u64 {
        self.keys.hash_one((0_u8, scheme, authority, path))
    }

    fn place(&self, scheme: &str, authority: &str, path: &str) -> u64 {
        self.keys.hash_one((1_u8, scheme, authority, path.split('?').next().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_known_by_its_url_and_its_path_by_any_query_until_it_is_forgotten() {
        let mut memory = Memory::default();
        memory.held("http", "a.example", "/x?1", 5_000, 100);
        assert_eq!(memory.of("http", "a.example", "/x?1", 200), Some(Known::Held));
        assert_eq!(memory.of("http", "a.example", "/x?1", 5_100), Some(Known::Kept), "not fresh any more");
        assert_eq!(memory.of("http", "a.example", "/x?2", 200), Some(Known::Kept));
        assert_eq!(memory.of("https", "a.example", "/x?1", 200), None);
        assert_eq!(memory.of("http", "a.example", "/x?1", 100 + BELIEVED_MS), None);
        memory.not_kept("http", "a.example", "/y", 0);
        assert_eq!(memory.of("http", "a.example", "/y?z", 1), Some(Known::NotKept));
        memory.leave_alone("http", "a.example", "/z", 0);
        assert_eq!(memory.of("http", "a.example", "/z", 1), Some(Known::LeftAlone));
        assert_eq!(memory.of("http", "a.example", "/z?", 1), None);
    }

    #[test]
    fn it_holds_so_many_and_no_more() {
        let mut memory = Memory::default();
        for number in 0..REMEMBERED + 10 {
            memory.not_kept("http", "a.example", &format!("/{number}"), 0);
        }
        assert_eq!((memory.entries.len(), memory.order.len()), (REMEMBERED, REMEMBERED));
        assert_eq!(memory.of("http", "a.example", "/9", 1), None, "the oldest went");
        assert_eq!(memory.of("http", "a.example", "/10", 1), Some(Known::NotKept));
    }
}
