//! The bytes on disk: of files with a name, and of those without one that somebody holds open.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::index::Index;
use crate::key::Key;

/// A file that is open.
#[derive(Debug)]
struct Held {
    key: Key,
    holders: u32,
    bytes: u64,
    /// True while the file has no key: it is in the making, or was removed. Then the index does not count it.
    is_loose: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) index: Index,
    /// By inode. The system gives no inode to a second file while the first is open.
    held: HashMap<u64, Held>,
    /// How many holders the named file of a key has.
    pinned: HashMap<Key, u32>,
    /// Bytes of loose files.
    pub(crate) loose: u64,
}

impl Books {
    fn pin(&mut self, key: Key, holders: u32) {
        *self.pinned.entry(key).or_default() += holders;
    }

    fn unpin(&mut self, key: Key, holders: u32) {
        if let Some(count) = self.pinned.get_mut(&key) {
            *count = count.saturating_sub(holders);
            if *count == 0 {
                self.pinned.remove(&key);
            }
        }
    }

    /// Notes that a file has lost its name.
    pub(crate) fn loosen(&mut self, inode: u64) {
        let Some(held) = self.held.get_mut(&inode).filter(|held| !held.is_loose) else { return };
        held.is_loose = true;
        self.loose = self.loose.saturating_add(held.bytes);
        let (key, holders) = (held.key, held.holders);
        self.unpin(key, holders);
    }

    /// Notes that a loose file has got its key, and takes `bytes` on disk.
    pub(crate) fn settle(&mut self, inode: u64, bytes: u64) {
        let Some(held) = self.held.get_mut(&inode).filter(|held| held.is_loose) else { return };
        held.is_loose = false;
        self.loose = self.loose.saturating_sub(held.bytes);
        held.bytes = bytes;
        let (key, holders) = (held.key, held.holders);
        self.pin(key, holders);
        self.index.set(key, bytes);
    }

    fn hold(&mut self, inode: u64, key: Key, bytes: u64, is_loose: bool) {
        let held = self.held.entry(inode).or_insert(Held { key, holders: 0, bytes, is_loose });
        held.holders += 1;
        let is_first = held.holders == 1;
        if !held.is_loose {
            self.pin(key, 1);
        } else if is_first {
            self.loose = self.loose.saturating_add(bytes);
        }
    }

    fn release(&mut self, inode: u64) {
        let Some(held) = self.held.get_mut(&inode) else { return };
        held.holders = held.holders.saturating_sub(1);
        let (key, is_loose, bytes, is_last) = (held.key, held.is_loose, held.bytes, held.holders == 0);
        if !is_loose {
            self.unpin(key, 1);
        } else if is_last {
            self.loose = self.loose.saturating_sub(bytes);
        }
        if is_last {
            self.held.remove(&inode);
        }
    }

    /// Changes the bytes of an open file.
    fn resize(&mut self, inode: u64, bytes: u64) {
        let Some(held) = self.held.get_mut(&inode) else { return };
        let before = std::mem::replace(&mut held.bytes, bytes);
        if held.is_loose {
            self.loose = self.loose.saturating_sub(before).saturating_add(bytes);
        } else if self.index.has(held.key) {
            self.index.set(held.key, bytes);
        }
    }

    fn total(&self) -> u64 {
        self.index.bytes().saturating_add(self.loose)
    }

    fn victim(&mut self) -> Option<Key> {
        // The removal of a file that somebody holds would free nothing.
        let pinned = &self.pinned;
        self.index.victim(|key| pinned.contains_key(&key))
    }
}

/// The outcome of [`Ledger::grow`].
#[derive(Debug)]
pub(crate) enum Room {
    /// There was room, and the bytes are counted.
    Taken,
    /// This file must go first.
    Evict(Key),
    /// Nothing can be removed.
    Full,
}

/// The books, and the most bytes that they may show.
#[derive(Debug)]
pub(crate) struct Ledger {
    books: Mutex<Books>,
    pub(crate) max_bytes: u64,
}

impl Ledger {
    pub(crate) fn new(max_bytes: u64) -> Arc<Self> {
        Arc::new(Self { books: Mutex::default(), max_bytes })
    }

    /// Locks the books. Nobody reads or writes a disk meanwhile.
    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a file as open until the lease is dropped.
    pub(crate) fn lease(self: &Arc<Self>, inode: u64, key: Key, bytes: u64, is_loose: bool) -> Lease {
        self.books().hold(inode, key, bytes, is_loose);
        Lease { ledger: Arc::clone(self), inode }
    }

    /// Counts `bytes` for an open file, if they fit.
    pub(crate) fn grow(&self, inode: u64, bytes: u64) -> Room {
        self.take(inode, |before| before.max(bytes))
    }

    /// Counts `more` bytes for an open file, if they fit.
    pub(crate) fn add(&self, inode: u64, more: u64) -> Room {
        self.take(inode, |before| before.saturating_add(more))
    }

    fn take(&self, inode: u64, after: impl Fn(u64) -> u64) -> Room {
        let mut books = self.books();
        let Some(before) = books.held.get(&inode).map(|held| held.bytes) else { return Room::Full };
        let bytes = after(before);
        if books.total().saturating_add(bytes.saturating_sub(before)) > self.max_bytes {
            return books.victim().map_or(Room::Full, Room::Evict);
        }
        books.resize(inode, bytes);
        Room::Taken
    }

    /// Counts `bytes` for an open file.
    pub(crate) fn resize(&self, inode: u64, bytes: u64) {
        self.books().resize(inode, bytes);
    }

    /// Returns the file to remove next, if there are too many bytes.
    pub(crate) fn excess(&self) -> Option<Key> {
        let mut books = self.books();
        if books.total() > self.max_bytes { books.victim() } else { None }
    }
}

/// Says that a file is open.
#[derive(Debug)]
pub(crate) struct Lease {
    ledger: Arc<Ledger>,
    pub(crate) inode: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.ledger.books().release(self.inode);
    }
}

/// The error for a response that does not fit.
pub(crate) fn full() -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, "the response does not fit into the store's bytes")
}
