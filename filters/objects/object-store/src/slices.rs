//! A body in blocks: a sparse file with a map of the blocks that are there.
//!
//! ```text
//! 0       head
//! body_at the body, `length` bytes, with holes
//! map_at  16 bytes for each block: the checksum of the block, or zeros if it is missing
//! ```
//!
//! The checksum of a block is written after its bytes. A crash of the machine may keep the one and lose the other, so each
//! block is checked at its first use in a process. Two programs may fill one file: both have the same validator, so they
//! write the same bytes to the same place, and each block has its own place in the map.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use object_rules::slices::Blocks;
use sha2::{Digest, Sha256};

use crate::checks::Checked;
use crate::head::{MAP_ENTRY, Placed};
use crate::key::first_half;
use crate::read::{Wait, read_full};
use crate::reader::Reader;

const CHUNK: usize = 256 * 1024;
/// The checksum of a block. Zeros: the block is missing.
pub(crate) type Sum = [u8; 16];

/// The sliced body of a stored response, in an open file. Clones share it. The file counts as that of a [`Reader`] does.
#[derive(Debug, Clone)]
pub struct Slices(Arc<Open>);

#[derive(Debug)]
struct Open {
    stamp: u64,
    map_at: u64,
    blocks: Blocks,
    reader: Reader,
    /// Bytes that writers have reserved and not written yet.
    reserved: AtomicU64,
    checked: Arc<Checked>,
}

impl Slices {
    pub(crate) fn new(placed: &Placed, reader: Reader, checked: Arc<Checked>) -> Self {
        Self(Arc::new(Open {
            stamp: placed.stamp,
            map_at: placed.map_at(),
            blocks: Blocks { length: placed.head.length },
            reader,
            reserved: AtomicU64::new(0),
            checked,
        }))
    }

    /// Returns a number that no other body has. A refreshed response keeps it.
    pub fn stamp(&self) -> u64 {
        self.0.stamp
    }

    /// Returns how the body is divided.
    pub fn blocks(&self) -> Blocks {
        self.0.blocks
    }

    /// Returns a handle that reads the body. Bytes of blocks that are neither checked nor on their way are without meaning.
    pub fn reader(&self) -> &Reader {
        &self.0.reader
    }

    /// Returns for each block if the map says that it is there. [`Slices::check`] says if that is true.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn noted(&self) -> io::Result<Vec<bool>> {
        Ok(read_map(self.reader().file(), self.0.map_at, self.0.blocks)?.iter().map(is_noted).collect())
    }

    /// Returns true if a block is there and has the bytes that were stored. The first call for a block reads it.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn check(&self, block: u64) -> io::Result<bool> {
        if self.is_checked(block) {
            return Ok(true);
        }
        let placed = (self.reader().body_at(), self.0.map_at, self.0.blocks);
        let is_good = is_good(self.reader().file(), self.0.stamp, placed, block)?;
        if is_good {
            self.0.checked.add(block);
        }
        Ok(is_good)
    }

    /// Returns true if this process has written or checked a block.
    pub fn is_checked(&self, block: u64) -> bool {
        self.0.checked.has(block)
    }

    /// Counts a reservation of a writer.
    pub(crate) fn reserve(&self, bytes: u64) {
        self.0.reserved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Ends a reservation. Returns how many bytes other writers have reserved.
    pub(crate) fn release(&self, bytes: u64) -> u64 {
        self.0.reserved.fetch_sub(bytes, Ordering::Relaxed).saturating_sub(bytes)
    }

    /// Notes that a block is there. Its bytes were written before.
    pub(crate) fn note(&self, file: &File, block: u64, sum: &Sum) -> io::Result<()> {
        file.write_all_at(sum, place_of(self.0.map_at, block))?;
        self.0.checked.add(block);
        Ok(())
    }
}

/// Begins the checksum of a block. The place in it makes a block at a wrong place a bad one.
pub(crate) fn sum_of(stamp: u64, block: u64) -> Sha256 {
    Sha256::new().chain_update(stamp.to_le_bytes()).chain_update(block.to_le_bytes())
}

/// Ends a checksum.
pub(crate) fn ended(sum: Sha256) -> Sum {
    first_half(sum)
}

fn is_noted(sum: &Sum) -> bool {
    sum.iter().any(|&byte| byte != 0)
}

fn place_of(map_at: u64, block: u64) -> u64 {
    map_at.saturating_add(block.saturating_mul(MAP_ENTRY))
}

fn read_map(file: &File, map_at: u64, blocks: Blocks) -> io::Result<Vec<Sum>> {
    let count = usize::try_from(blocks.count()).map_err(io::Error::other)?;
    let mut map = vec![[0; 16]; count];
    let bytes = map.as_flattened_mut();
    let (length, have) = (bytes.len(), read_full(file, map_at, bytes, Wait::Disk)?);
    if have == length { Ok(map) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Returns how many bytes of the body the map notes.
pub(crate) fn noted_bytes(file: &File, placed: &Placed) -> io::Result<u64> {
    let blocks = Blocks { length: placed.head.length };
    let map = read_map(file, placed.map_at(), blocks)?;
    let noted = (0..).zip(&map).filter(|(_, sum)| is_noted(sum)).map(|(block, _)| blocks.bytes(block));
    Ok(noted.map(|bytes| bytes.end.saturating_sub(bytes.start)).sum())
}

/// Removes the blocks from the map that the file does not have. Returns how many.
pub(crate) fn repair(file: &File, placed: &Placed) -> io::Result<u64> {
    let (blocks, map_at) = (Blocks { length: placed.head.length }, placed.map_at());
    let mut bad = 0;
    for (block, sum) in (0..).zip(read_map(file, map_at, blocks)?) {
        if is_noted(&sum) && !is_good(file, placed.stamp, (placed.body_at, map_at, blocks), block)? {
            file.write_all_at(&[0; 16], place_of(map_at, block))?;
            bad += 1;
        }
    }
    Ok(bad)
}

/// Returns true if the map notes a block, and the file has its bytes.
fn is_good(file: &File, stamp: u64, placed: (u64, u64, Blocks), block: u64) -> io::Result<bool> {
    let (body_at, map_at, blocks) = placed;
    if block >= blocks.count() {
        return Ok(false);
    }
    let mut noted: Sum = [0; 16];
    let have = read_full(file, place_of(map_at, block), &mut noted, Wait::Disk)?;
    if have < noted.len() || !is_noted(&noted) {
        return Ok(false);
    }
    let (bytes, mut sum) = (blocks.bytes(block), sum_of(stamp, block));
    let mut chunk = vec![0; CHUNK];
    let mut at = bytes.start;
    while at < bytes.end {
        let most = usize::try_from(bytes.end.saturating_sub(at)).unwrap_or(CHUNK).min(CHUNK);
        let part = chunk.get_mut(..most).unwrap_or_default();
        if read_full(file, body_at.saturating_add(at), part, Wait::Disk)? < most {
            return Ok(false);
        }
        sum.update(&part);
        at = at.saturating_add(most as u64);
    }
    Ok(ended(sum) == noted)
}
