//! Bytes of a sliced body that arrive.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use object_rules::slices::{BLOCK, Blocks};
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use crate::disk::Disk;
use crate::files::about;
use crate::fill::{invalid, stamp};
use crate::head::{Head, Kind, Placed, encode, sliced_body_at};
use crate::key::Key;
use crate::ledger::full;
use crate::object::{Body, Object};
use crate::reader::Reader;
use crate::slices::{Slices, ended, sum_of};

/// Makes the file of a sliced response, without any block, and puts it under its key.
pub(crate) fn begin(disk: &Arc<Disk>, key: Key, head: Head) -> io::Result<Arc<Object>> {
    disk.check()?;
    // Others must have room beside the largest.
    if head.length > disk.ledger.max_bytes / 2 {
        return Err(full());
    }
    let mut placed = Placed { head: Head { kind: Kind::Slices, ..head }, body_at: 0, stamp: stamp() };
    placed.body_at = sliced_body_at(encode(&placed).map_err(invalid)?.len());
    let encoded = encode(&placed).map_err(invalid)?;
    let (name, file) = disk.health.watch(disk.folder.create())?;
    let made = disk.health.watch(about(&file)).and_then(|seen| {
        let lease = disk.ledger.lease(seen.inode, key, 0, true);
        let reader = Reader::new(lease, file, placed.body_at, placed.head.length);
        disk.reserve(seen.inode, placed.body_at)?;
        let written = reader.file().set_len(placed.end()).and_then(|()| reader.file().write_all_at(&encoded, 0));
        disk.health.watch(written)?;
        disk.health.watch(disk.publish(&name, key, &reader))?;
        Ok(reader)
    });
    match made {
        Ok(reader) => {
            disk.hot.remove(key);
            let slices = Slices::new(&placed, reader, disk.checks.of(placed.stamp));
            Ok(Object::new(key, placed, Body::Slices(slices)))
        }
        Err(error) => {
            disk.folder.discard(&name);
            Err(error)
        }
    }
}

/// Writes a run of bytes. Each block whose bytes all came is noted in the file, and stays there if the run breaks off.
#[derive(Debug)]
pub struct SliceWriter {
    disk: Arc<Disk>,
    slices: Slices,
    file: File,
    at: u64,
    /// The checksum of the block at hand. None if its beginning does not come from here.
    sum: Option<Sha256>,
    /// True until the first byte of the block at hand.
    is_new: bool,
    /// True if the block at hand is there already.
    is_known: bool,
    reserved: u64,
}

impl SliceWriter {
    pub(crate) fn open(disk: &Arc<Disk>, key: Key, slices: Slices, at: u64) -> io::Result<Self> {
        disk.check()?;
        let found = disk.folder.find(key, OFlags::RDWR)?;
        let Some((file, _)) = found.filter(|(_, seen)| seen.inode == slices.reader().inode()) else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the response was removed or replaced"));
        };
        Ok(Self { disk: Arc::clone(disk), slices, file, at, sum: None, is_new: true, is_known: false, reserved: 0 })
    }

    /// Returns the place of the next byte.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Appends bytes. Other responses are removed first if there is no room.
    ///
    /// # Errors
    /// The disk takes no writes, or readers hold all that could be removed (`StorageFull`), or the bytes reach beyond the body
    /// (`InvalidInput`). The complete blocks before remain. After an error, the writer is of no use.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let block = Blocks::of(self.at);
            let place = self.slices.blocks().bytes(block);
            let left = usize::try_from(place.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
            if left == 0 {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            if self.is_new {
                self.begin(block, place.start)?;
            }
            let (some, more) = rest.split_at(left.min(rest.len()));
            if !self.is_known {
                let place = self.slices.reader().body_at().saturating_add(self.at);
                self.disk.health.watch(self.file.write_all_at(some, place))?;
            }
            if let Some(sum) = &mut self.sum {
                sum.update(some);
            }
            self.at = self.at.saturating_add(some.len() as u64);
            rest = more;
            if self.at >= place.end {
                self.end(block)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, block: u64, start: u64) -> io::Result<()> {
        self.is_known = self.slices.is_checked(block);
        if !self.is_known {
            self.reserve()?;
        }
        let is_first = self.at == start && !self.is_known;
        self.sum = is_first.then(|| sum_of(self.slices.stamp(), block));
        self.is_new = false;
        Ok(())
    }

    fn reserve(&mut self) -> io::Result<()> {
        self.disk.grow(self.slices.reader().inode(), BLOCK)?;
        self.slices.reserve(BLOCK);
        self.reserved = BLOCK;
        Ok(())
    }

    fn end(&mut self, block: u64) -> io::Result<()> {
        self.is_new = true;
        if let Some(sum) = self.sum.take() {
            self.disk.health.watch(self.slices.note(&self.file, block, &ended(sum)))?;
        }
        self.settle();
        Ok(())
    }

    fn settle(&mut self) {
        let reserved = std::mem::take(&mut self.reserved);
        if reserved == 0 {
            return;
        }
        let left = self.slices.release(reserved);
        if let Ok(seen) = about(&self.file) {
            self.disk.ledger.resize(seen.inode, seen.bytes.saturating_add(left));
        }
    }
}

impl Drop for SliceWriter {
    fn drop(&mut self) {
        self.settle();
    }
}
