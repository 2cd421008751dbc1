//! Walks over all files.

use std::io;
use std::time::Duration;

use rustix::fs::OFlags;

use crate::disk::Disk;
use crate::files::About;
use crate::head::{Head, Kind, Placed};
use crate::key::Key;
use crate::read::{Broken, Start, Wait, read_full};
use crate::slices::{noted_bytes, repair};

/// A head is written over within this time.
const PAUSE: Duration = Duration::from_millis(20);
const CHUNK: usize = 256 * 1024;

/// A file, as [`Store::list`](crate::Store::list) passes it.
#[derive(Debug)]
pub struct Listed<'a> {
    /// The key.
    pub key: Key,
    /// The head of the response or the marker.
    pub head: &'a Head,
    /// Bytes of the body that are stored: all, unless it comes in blocks.
    pub stored_bytes: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
}

/// The result of [`Store::verify`](crate::Store::verify).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verified {
    /// Files that are whole.
    pub good: u64,
    /// Files that were torn or of another format, and are gone.
    pub removed: u64,
    /// Files that the disk did not give. They stay.
    pub unreadable: u64,
    /// Blocks of good files that were torn, and are gone.
    pub blocks: u64,
}

/// Learns the sizes of all files. Requests find the files without that.
pub(crate) fn scan(disk: &Disk) -> io::Result<()> {
    disk.folder.sweep()?;
    disk.folder.walk(|key| disk.learn(key))?;
    disk.trim();
    Ok(())
}

/// Passes on every head that can be read.
pub(crate) fn list(disk: &Disk, mut each: impl FnMut(Listed<'_>)) -> io::Result<()> {
    disk.folder.walk(|key| {
        let Ok(Some((file, About { size, bytes, .. }))) = disk.folder.find(key, OFlags::RDONLY) else { return };
        if let Ok(start) = Start::read(&file, size, Wait::Disk) {
            let head = &start.placed.head;
            let stored_bytes = match head.kind {
                Kind::Object | Kind::Varies => head.length,
                Kind::Slices => noted_bytes(&file, &start.placed).unwrap_or(0),
            };
            each(Listed { key, head, stored_bytes, disk_bytes: bytes });
        }
    })
}

/// Removes the files of all URLs that are `meant`. Returns how many.
pub(crate) fn purge(disk: &Disk, is_meant: impl Fn(&[u8]) -> bool) -> io::Result<u64> {
    let mut keys = Vec::new();
    list(disk, |listed| {
        if is_meant(&listed.head.url) {
            keys.push(listed.key);
        }
    })?;
    let mut removed = 0;
    for key in keys {
        removed += u64::from(disk.remove(key)?);
    }
    Ok(removed)
}

/// Reads every file, and removes what is torn.
pub(crate) fn verify(disk: &Disk) -> io::Result<Verified> {
    let mut found = Verified::default();
    let mut chunk = vec![0; CHUNK];
    disk.folder.walk(|key| match check(disk, key, &mut chunk) {
        Ok(blocks) => {
            found.good += 1;
            found.blocks += blocks;
        }
        Err((Broken::Torn | Broken::Head(_), Some(inode))) => {
            disk.remove_torn(key, inode);
            found.removed += 1;
        }
        // It was removed meanwhile.
        Err((Broken::Torn | Broken::Head(_), None)) => {}
        Err((Broken::Disk(_), _)) => found.unreadable += 1,
    })?;
    Ok(found)
}

/// Reads a whole file, and removes torn blocks. Returns how many. With a reason, gives the inode if there is a file.
fn check(disk: &Disk, key: Key, chunk: &mut [u8]) -> Result<u64, (Broken, Option<u64>)> {
    let opened = disk.folder.find(key, OFlags::RDONLY).map_err(|error| (Broken::Disk(error), None))?;
    let Some((file, seen)) = opened else { return Err((Broken::Torn, None)) };
    let named = |broken: Broken| (broken, Some(seen.inode));
    let start = match Start::read(&file, seen.size, Wait::Disk) {
        Err(Broken::Head(_)) => {
            // Another process may be writing over the head.
            std::thread::sleep(PAUSE);
            Start::read(&file, seen.size, Wait::Disk)
        }
        start => start,
    };
    let placed = start.map_err(named)?.placed;
    if placed.head.kind == Kind::Slices {
        return repaired(disk, key, seen.inode, &placed).map_err(|error| named(Broken::Disk(error)));
    }
    let (mut at, end) = (placed.body_at, placed.body_at.saturating_add(placed.head.length));
    while at < end {
        let most = usize::try_from(end - at).unwrap_or(CHUNK).min(chunk.len());
        let part = chunk.get_mut(..most).unwrap_or_default();
        match read_full(&file, at, part, Wait::Disk) {
            Ok(count) if count == most => at += count as u64,
            Ok(_) => return Err(named(Broken::Torn)),
            Err(error) => return Err(named(Broken::Disk(error))),
        }
    }
    Ok(0)
}

/// Removes torn blocks of a file, unless another one has taken its place.
fn repaired(disk: &Disk, key: Key, inode: u64, placed: &Placed) -> io::Result<u64> {
    match disk.folder.find(key, OFlags::RDWR)? {
        Some((file, seen)) if seen.inode == inode => repair(&file, placed),
        _ => Ok(0),
    }
}
