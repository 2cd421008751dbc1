//! The store as its users see it.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http_semantics::FieldList;
use object_rules::Life;

use crate::disk::Disk;
use crate::files::Folder;
use crate::fill::Fill;
use crate::head::Head;
use crate::key::Key;
use crate::object::{Found, Object};
use crate::slice_writer::{self, SliceWriter};
use crate::slices::Slices;
use crate::upkeep::{self, Listed, Verified};

/// How often the folder is scanned again: another program may have left files.
const SCAN_EVERY: Duration = Duration::from_hours(1);

/// How a store is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The folder. It is made if it is missing, but its parent is not. It belongs to the user of the process, with mode
    /// 0700, and is no symbolic link.
    pub folder: PathBuf,
    /// The most bytes on disk. Folders are not counted. If two programs share the folder, each counts the files that it has
    /// written or found, and the other ones after its next scan, an hour later at most.
    pub max_bytes: u64,
    /// The most bytes of responses in memory. 0: none.
    pub hot_bytes: u64,
}

/// Figures of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Files that the store knows: all of them after [`Counts::is_scanned`].
    pub entries: u64,
    /// Bytes on disk of these files.
    pub disk_bytes: u64,
    /// The most bytes on disk.
    pub max_bytes: u64,
    /// Bytes of responses in memory.
    pub hot_bytes: u64,
    /// Bytes on disk of files in the making, and of removed files that readers hold.
    pub unlinked_bytes: u64,
    /// Writes that failed since the start.
    pub errors: u64,
    /// True once the first scan of the folder is over.
    pub is_scanned: bool,
}

/// Responses in a folder. See the [crate](crate).
#[derive(Debug)]
pub struct Store {
    disk: Arc<Disk>,
    is_scanned: Arc<AtomicBool>,
    scanned_at: Mutex<Instant>,
}

impl Store {
    /// Opens a store, and starts a thread that learns what is in the folder.
    ///
    /// # Errors
    /// The folder cannot be made or opened, belongs to another user, or others may enter it. The text has the reason.
    pub fn open(options: &Options) -> io::Result<Arc<Self>> {
        Self::within(Folder::make(&options.folder)?, options.max_bytes, options.hot_bytes)
    }

    /// As [`Store::open`], with a folder that is open. A program may give up rights in between: no thread runs yet.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn within(folder: Folder, max_bytes: u64, hot_bytes: u64) -> io::Result<Arc<Self>> {
        let disk = Disk::new(folder, max_bytes, hot_bytes);
        let store = Self { disk, is_scanned: Arc::default(), scanned_at: Mutex::new(Instant::now()) };
        store.scan()?;
        Ok(Arc::new(store))
    }

    fn scan(&self) -> io::Result<()> {
        let (disk, is_scanned) = (Arc::clone(&self.disk), Arc::clone(&self.is_scanned));
        std::thread::Builder::new().name("store-scan".into()).spawn(move || {
            // A folder that cannot be read holds nothing that could be removed.
            let _ = upkeep::scan(&disk);
            is_scanned.store(true, Ordering::Release);
        })?;
        Ok(())
    }

    /// Looks a key up. A file whose URL is not `url`, or that cannot be read, is absent.
    pub fn find(&self, key: Key, url: &[u8]) -> Found {
        self.disk.find(key, url)
    }

    /// Looks a key up without waiting for the disk. None: [`Store::find`] may find it.
    pub fn find_in_memory(&self, key: Key, url: &[u8]) -> Option<Found> {
        self.disk.find_in_memory(key, url)
    }

    /// Begins to store a response. `head.length` does not count: the appended bytes do.
    ///
    /// # Errors
    /// The head exceeds the limits (`InvalidInput`), there is no room (`StorageFull`), a write failed less than
    /// [`PAUSE`](crate::PAUSE) ago (`ResourceBusy`), or the disk takes no writes.
    pub fn begin(&self, key: Key, head: Head) -> io::Result<Fill> {
        self.scan_again();
        Fill::begin(&self.disk, key, head)
    }

    /// Stores a response whose body comes in blocks, in any order. `head.length` is its length. No block is there yet.
    ///
    /// # Errors
    /// As for [`Store::begin`]. A body of more than half of the store's bytes has no room (`StorageFull`).
    pub fn begin_slices(&self, key: Key, head: Head) -> io::Result<Arc<Object>> {
        self.scan_again();
        slice_writer::begin(&self.disk, key, head)
    }

    /// Begins to write the bytes of a sliced response from `at` on.
    ///
    /// # Errors
    /// The response was removed or replaced (`NotFound`), or a write failed less than
    /// [`PAUSE`](crate::PAUSE) ago (`ResourceBusy`), or the disk takes no writes.
    pub fn write_slices(&self, key: Key, slices: &Slices, at: u64) -> io::Result<SliceWriter> {
        SliceWriter::open(&self.disk, key, slices.clone(), at)
    }

    /// Removes a sliced response, unless another one has taken its place. Open handles stay valid.
    pub fn remove_slices(&self, key: Key, slices: &Slices) {
        self.disk.remove_torn(key, slices.reader().inode());
    }

    fn scan_again(&self) {
        let mut scanned_at = self.scanned_at.lock().unwrap_or_else(PoisonError::into_inner);
        if scanned_at.elapsed() >= SCAN_EVERY {
            *scanned_at = Instant::now();
            // Without a thread, the next hour's scan does it.
            let _ = self.scan();
        }
    }

    /// Notes that responses of a URL depend on these fields. `key` is that of the URL. Returns the stamp of the marker.
    ///
    /// # Errors
    /// As for [`Store::begin`] and [`Fill::commit`].
    pub fn mark(&self, key: Key, url: &[u8], names: &[Vec<u8>]) -> io::Result<u64> {
        if let Found::Varies(known) = self.find(key, url)
            && known.names == names
        {
            return Ok(known.stamp);
        }
        self.begin(key, Head::varies(url, names))?.commit().map(|marker| marker.stamp)
    }

    /// Gives a stored response new fields and a new life, after a 304. Other processes see the old head, the new one, or
    /// for an instant none.
    ///
    /// # Errors
    /// The response was removed or replaced (`NotFound`), and else as for [`Store::begin`] and [`Fill::commit`].
    pub fn refresh(&self, object: &Object, fields: FieldList, life: Life) -> io::Result<Arc<Object>> {
        crate::refresh::refresh(&self.disk, object, fields, life)
    }

    /// Removes what lies under a key. False if there is nothing.
    ///
    /// # Errors
    /// The disk takes no writes.
    pub fn remove(&self, key: Key) -> io::Result<bool> {
        self.disk.remove(key)
    }

    /// Removes the responses and markers of all URLs that are `meant`, and returns how many. Reads every head. A response
    /// that is in the making then is stored nevertheless.
    ///
    /// # Errors
    /// The folder cannot be read, or the disk takes no writes. Then some files are left.
    pub fn purge(&self, is_meant: impl Fn(&[u8]) -> bool) -> io::Result<u64> {
        upkeep::purge(&self.disk, is_meant)
    }

    /// Passes on every response and marker, in no order. Reads every head.
    ///
    /// # Errors
    /// The folder cannot be read. Files that cannot be read are left out.
    pub fn list(&self, each: impl FnMut(Listed<'_>)) -> io::Result<()> {
        upkeep::list(&self.disk, each)
    }

    /// Reads every file, and removes those that are torn.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn verify(&self) -> io::Result<Verified> {
        upkeep::verify(&self.disk)
    }

    /// Returns the figures.
    pub fn counts(&self) -> Counts {
        let books = self.disk.ledger.books();
        Counts {
            entries: books.index.len() as u64,
            disk_bytes: books.index.bytes(),
            max_bytes: self.disk.ledger.max_bytes,
            unlinked_bytes: books.loose,
            hot_bytes: self.disk.hot.bytes(),
            errors: self.disk.health.errors(),
            is_scanned: self.is_scanned.load(Ordering::Acquire),
        }
    }
}
