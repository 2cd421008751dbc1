//! The folder, the books about it, and the order in which both change.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use rustix::fs::OFlags;

use crate::checks::Checks;
use crate::files::{About, Folder, about, is_gone};
use crate::head::{Kind, Placed};
use crate::health::Health;
use crate::hot::{Hot, NOTE_EVERY};
use crate::key::Key;
use crate::ledger::{Ledger, Room, full};
use crate::object::{Body, Found, MAX_MEMORY_BODY, Marker, Object};
use crate::read::{Broken, Start, Wait};
use crate::reader::Reader;
use crate::slices::Slices;

/// The most files that are spared while room is made, so that the search for room ends.
const MOST_SPARED: u32 = 64;

/// All parts of a store.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) folder: Folder,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) hot: Hot,
    pub(crate) health: Health,
    pub(crate) checks: Checks,
    /// Held while a name and the books change together. Lookups do not take it.
    names: Mutex<()>,
}

impl Disk {
    pub(crate) fn new(folder: Folder, max_bytes: u64, hot_bytes: u64) -> Arc<Self> {
        let (ledger, hot) = (Ledger::new(max_bytes), Hot::new(hot_bytes));
        Arc::new(Self {
            folder,
            ledger,
            hot,
            health: Health::default(),
            checks: Checks::default(),
            names: Mutex::default(),
        })
    }

    fn names(&self) -> MutexGuard<'_, ()> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks a key up. A file that cannot be read is absent.
    pub(crate) fn find(self: &Arc<Self>, key: Key, url: &[u8]) -> Found {
        self.find_in_memory(key, url).unwrap_or_else(|| found(self.find_file(key), url))
    }

    /// Looks a key up among the responses in memory.
    pub(crate) fn find_in_memory(&self, key: Key, url: &[u8]) -> Option<Found> {
        self.find_hot(key).map(|object| found(Some(object), url))
    }

    /// Finds a response in memory whose file is still the same: another process may have replaced or removed it.
    fn find_hot(&self, key: Key) -> Option<Arc<Object>> {
        let (object, version, _) = self.hot.get(key)?;
        if self.folder.version(key) != Some(version) {
            self.hot.remove(key);
            self.learn(key);
            return None;
        }
        self.note(key);
        Some(object)
    }

    fn find_file(self: &Arc<Self>, key: Key) -> Option<Arc<Object>> {
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
        let is_sliced = start.placed.head.kind == Kind::Slices;
        if start.placed.head.length <= MAX_MEMORY_BODY && !is_sliced {
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
        let body = if is_sliced {
            Body::Slices(Slices::new(&start.placed, reader, self.checks.of(start.placed.stamp)))
        } else {
            Body::File(reader)
        };
        Some(Object::new(key, start.placed, body))
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
        self.make_room(|| self.ledger.grow(inode, bytes))
    }

    /// Makes room until an open file may take `more` bytes than are counted for it.
    pub(crate) fn grow(&self, inode: u64, more: u64) -> io::Result<()> {
        self.make_room(|| self.ledger.add(inode, more))
    }

    fn make_room(&self, take: impl Fn() -> Room) -> io::Result<()> {
        let mut spared = 0;
        loop {
            match take() {
                Room::Taken => return Ok(()),
                Room::Evict(key) => self.evict(key, &mut spared)?,
                Room::Full => return Err(full()),
            }
        }
    }

    /// Removes a file that was not used for a turn of the clock, unless another process has read it lately.
    fn evict(&self, key: Key, spared: &mut u32) -> io::Result<()> {
        let is_read = || self.folder.stat(key).is_ok_and(|seen| seen.was_read(SystemTime::now(), 2 * NOTE_EVERY));
        if *spared < MOST_SPARED && is_read() {
            *spared += 1;
            self.ledger.books().index.touch(key);
            return Ok(());
        }
        self.health.watch(self.remove(key)).map(|_| ())
    }

    /// Removes files until the bytes fit.
    pub(crate) fn trim(&self) {
        let mut spared = 0;
        while let Some(key) = self.ledger.excess() {
            if self.evict(key, &mut spared).is_err() {
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
pub(crate) fn found(object: Option<Arc<Object>>, url: &[u8]) -> Found {
    match object.filter(|object| object.head.url == url) {
        None => Found::Absent,
        Some(object) if object.head.kind == Kind::Varies => {
            Found::Varies(Marker { names: object.head.vary.clone(), stamp: object.stamp })
        }
        Some(object) => Found::Object(object),
    }
}
