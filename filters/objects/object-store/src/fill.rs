//! Responses that arrive.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use crate::disk::Disk;
use crate::files::about;
use crate::head::{Head, HeadError, Placed, body_at, encode};
use crate::key::{Key, first_half};
use crate::ledger::full;
use crate::object::{Body, MAX_MEMORY_BODY, Object};
use crate::read::{Wait, read_full};
use crate::reader::Reader;

/// Files take whole blocks of this many bytes on usual file systems.
const BLOCK: u64 = 4096;

/// A response in the making. It gets its key with [`Fill::commit`]; dropped before, it leaves nothing behind.
#[derive(Debug)]
pub struct Fill {
    disk: Arc<Disk>,
    key: Key,
    name: String,
    reader: Reader,
    placed: Placed,
    is_sound: bool,
    has_key: bool,
}

impl Fill {
    pub(crate) fn begin(disk: &Arc<Disk>, key: Key, head: Head) -> io::Result<Self> {
        disk.check()?;
        let mut placed = Placed { head: Head { length: 0, ..head }, body_at: 0, stamp: stamp() };
        placed.body_at = body_at(encode(&placed).map_err(invalid)?.len());
        let (name, file) = disk.health.watch(disk.folder.create())?;
        let inode = match about(&file) {
            Ok(about) => about.inode,
            Err(error) => {
                disk.folder.discard(&name);
                return disk.health.watch(Err(error));
            }
        };
        let lease = disk.ledger.lease(inode, key, 0, true);
        let reader = Reader::new(lease, file, placed.body_at, 0);
        let filling = Self { disk: Arc::clone(disk), key, name, reader, placed, is_sound: true, has_key: false };
        filling.reserve(0)?;
        Ok(filling)
    }

    fn reserve(&self, length: u64) -> io::Result<()> {
        let bytes = self.placed.body_at.saturating_add(length).div_ceil(BLOCK).saturating_mul(BLOCK);
        // One response must not drive out all others.
        if bytes > self.disk.ledger.max_bytes / 2 {
            return Err(full());
        }
        self.disk.reserve(self.reader.inode(), bytes)
    }

    /// Appends to the body. Other responses are removed first if there is no room.
    ///
    /// # Errors
    /// The disk takes no writes, or the response would take more than half of the store's bytes, or readers hold all that
    /// could be removed (`StorageFull` for both). After an error, [`Fill::commit`] fails as well.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let result = self.try_append(bytes);
        self.is_sound &= result.is_ok();
        result
    }

    fn try_append(&self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_sound {
            return Err(unsound());
        }
        let before = self.reader.length();
        let length = before.saturating_add(bytes.len() as u64);
        self.reserve(length)?;
        let at = self.placed.body_at.saturating_add(before);
        self.disk.health.watch(self.reader.file().write_all_at(bytes, at))?;
        self.reader.set_length(length);
        Ok(())
    }

    /// Returns a handle that reads the body while it grows. It remains valid after a commit, and after a drop.
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// Completes the response, and puts it under its key in place of an older one. Lookups in all processes find it at
    /// once.
    ///
    /// # Errors
    /// An append failed, or the disk takes no writes. Then an older response remains.
    pub fn commit(mut self) -> io::Result<Arc<Object>> {
        if !self.is_sound {
            return Err(unsound());
        }
        self.placed.head.length = self.reader.length();
        let mut head = encode(&self.placed).map_err(invalid)?;
        // The file reaches the place of the body, also if that is empty.
        head.resize(usize::try_from(self.placed.body_at).unwrap_or(0), 0);
        self.disk.health.watch(self.reader.file().write_all_at(&head, 0))?;
        let body = self.body()?;
        let seen = self.disk.health.watch(self.disk.publish(&self.name, self.key, &self.reader))?;
        self.has_key = true;
        let object = Object::new(self.key, self.placed.clone(), body);
        self.disk.hot.put(&object, seen.into());
        Ok(object)
    }

    fn body(&self) -> io::Result<Body> {
        let length = self.placed.head.length;
        if length > MAX_MEMORY_BODY {
            return Ok(Body::File(self.reader()));
        }
        let mut body = vec![0; usize::try_from(length).unwrap_or(0)];
        let have = read_full(self.reader.file(), self.placed.body_at, &mut body, Wait::Disk)?;
        if have == body.len() { Ok(Body::Memory(body.into())) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        if !self.has_key {
            self.disk.folder.discard(&self.name);
        }
    }
}

/// Draws a number that no other body has. Its parts differ between processes, runs and calls.
pub(crate) fn stamp() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let hasher = Sha256::new()
        .chain_update(std::process::id().to_le_bytes())
        .chain_update(time.to_le_bytes())
        .chain_update(NUMBER.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    let drawn = first_half(hasher);
    drawn.first_chunk().map_or(0, |half| u64::from_le_bytes(*half))
}

pub(crate) fn invalid(error: HeadError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("the head cannot be stored: {error:?}"))
}

fn unsound() -> io::Error {
    io::Error::other("an earlier write of this response failed")
}
