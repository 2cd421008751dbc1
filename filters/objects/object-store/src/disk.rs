//! The folder, the books about it, and the order in which both change.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::fs::OFlags;

use crate::files::{About, Folder, about, is_gone};
use crate::head::{Kind, Placed};
use crate::health::Health;
use crate::hot::Hot;
use crate::key::Key;
use crate::ledger::{Ledger, Room, full};
use crate::object::{Body, Found, MAX_MEMORY_BODY, Marker, Object, Reader};
use crate::read::{Broken, Start, Wait};

/// All parts of a store.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) folder: Folder,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) hot: Hot,
    pub(crate) health: Health,
    /// Held while a name and the books change together. Lookups do not take it.
    names: Mutex<()>,
}

impl Disk {
    pub(crate) fn new(folder: Folder, max_bytes: u64, hot_bytes: u64) -> Arc<Self> {
        let (ledger, hot) = (Ledger::new(max_bytes), Hot::new(hot_bytes));
        Arc::new(Self { folder, ledger, hot, health: Health::default(), names: Mutex::default() })
    }

    fn names(&self) -> MutexGuard<'_, ()> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks a key up. A file that cannot be read is absent.
    pub(crate) fn find(&self, key: Key, url: &[u8]) -> Found {
        self.find_in_memory(key, url).unwrap_or_else(|| found(self.find_file(key), url))
    }

    /// Looks a key up among the responses in memory.
    pub(crate) fn find_in_memory(&self, key: Key, url: &[u8]) -> Option<Found> {
        self.find_hot(key).map(|object| found(Some(object), url))
    }

    /// Finds a response in memory whose file is still the same: another process may have replaced or removed it.
    fn find_hot(&self, key: Key) -> Option<Arc<Object>> {
        let (object, version) = self.hot.get(key)?;
        if self.folder.version(key) != Some(version) {
            self.hot.remove(key);
            self.learn(key);
            return None;
        }
        self.note(key);
        Some(object)
    }

    fn find_file(&self, key: Key) -> Option<Arc<Object>> {
        let Ok(Some((file, seen))) = self.folder.find(key, OFlags::RDONLY) else {
            self.forget(key);
            return None;
        };
        let start = match Start::read(&file, seen.size, Wait::Disk) {
            Ok(start) => start,
            Err(Broken::Torn) => {
                self.remove_torn(key, seen.inode);
                return None;
            }
            // A refresh may be under way. If not, the next response for the key replaces the file.
            Err(Broken::Head(_) | Broken::Disk(_)) => return None,
        };
        self.note(key);
        if start.placed.head.length <= MAX_MEMORY_BODY {
            let body = start.body(&file, Wait::Disk).ok()?;
            let object = Object::new(key, start.placed, Body::Memory(body.into()));
            self.hot.put(&object, seen.into());
            return Some(object);
        }
        let lease = self.ledger.lease(seen.inode, key, seen.bytes, false);
        // Asked after the lease has begun: a removal before it did not see the lease.
        if about(&file).is_ok_and(|now| !now.is_named) {
            self.ledger.books().loosen(seen.inode);
        }
        let Placed { head, body_at, .. } = &start.placed;
        let reader = Reader::new(lease, file, *body_at, head.length);
        Some(Object::new(key, start.placed, Body::File(reader)))
    }

    /// Notes a use of a file, which may be one of another process.
    fn note(&self, key: Key) {
        if !self.ledger.books().index.touch(key) {
            self.learn(key);
        }
    }

    /// Takes the size of a file into the books. Another process may have written it.
    pub(crate) fn learn(&self, key: Key) {
        let _names = self.names();
        if let Ok(seen) = self.folder.stat(key) {
            self.ledger.books().index.set(key, seen.bytes);
        }
    }

    /// Forgets an entry whose file has vanished.
    fn forget(&self, key: Key) {
        // Most lookups of an absent key end here.
        if !self.ledger.books().index.has(key) {
            return;
        }
        let _names = self.names();
        if self.folder.stat(key).is_err_and(|error| is_gone(&error)) {
            self.ledger.books().index.remove(key);
            self.hot.remove(key);
        }
    }

    /// Removes the file of a key. False if there is none.
    pub(crate) fn remove(&self, key: Key) -> io::Result<bool> {
        self.remove_if(key, |_| true)
    }

    /// Removes a file that is torn, unless a newer one has taken its place.
    pub(crate) fn remove_torn(&self, key: Key, inode: u64) {
        // A file that cannot be removed stays torn, and each lookup finds it so.
        let _ = self.remove_if(key, |seen| seen.inode == inode);
    }

    fn remove_if(&self, key: Key, is_meant: impl Fn(&About) -> bool) -> io::Result<bool> {
        let _names = self.names();
        let seen = match self.folder.stat(key) {
            Ok(seen) if !is_meant(&seen) => return Ok(false),
            Ok(seen) => Some(seen),
            Err(error) if is_gone(&error) => None,
            Err(error) => return Err(error),
        };
        let removed = match self.folder.remove(key) {
            Err(error) if is_gone(&error) => false,
            result => result.map(|()| true)?,
        };
        let mut books = self.ledger.books();
        if let Some(seen) = seen.filter(|_| removed) {
            books.loosen(seen.inode);
        }
        books.index.remove(key);
        drop(books);
        self.hot.remove(key);
        Ok(removed)
    }

    /// Makes room until a loose file may take `bytes`.
    pub(crate) fn reserve(&self, inode: u64, bytes: u64) -> io::Result<()> {
        loop {
            match self.ledger.grow(inode, bytes) {
                Room::Taken => return Ok(()),
                Room::Evict(key) => self.health.watch(self.remove(key))?,
                Room::Full => return Err(full()),
            };
        }
    }

    /// Removes files until the bytes fit.
    pub(crate) fn trim(&self) {
        while let Some(key) = self.ledger.excess() {
            if self.health.watch(self.remove(key)).is_err() {
                return;
            }
        }
    }

    /// Gives a new file its key. Returns what the file system says about it.
    pub(crate) fn publish(&self, name: &str, key: Key, reader: &Reader) -> io::Result<About> {
        let names = self.names();
        let new = about(reader.file())?;
        let old = self.folder.stat(key).ok();
        self.folder.publish(name, key)?;
        let mut books = self.ledger.books();
        if let Some(old) = old {
            books.loosen(old.inode);
        }
        books.settle(reader.inode(), new.bytes);
        drop((books, names));
        self.trim();
        Ok(new)
    }

    /// Fails while the disk takes no writes.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.health.check(Instant::now())
    }
}

/// A file of another URL is absent: two URLs may have one hash.
fn found(object: Option<Arc<Object>>, url: &[u8]) -> Found {
    match object.filter(|object| object.head.url == url) {
        None => Found::Absent,
        Some(object) if object.head.kind == Kind::Varies => {
            Found::Varies(Marker { names: object.head.vary.clone(), stamp: object.stamp })
        }
        Some(object) => Found::Object(object),
    }
}
