//! The room on a disk.

use std::io;
use std::path::Path;

use rustix::fs::statvfs;

/// Returns the free bytes of the disk of `folder`.
pub fn free_disk(folder: &Path) -> io::Result<u64> {
    let disk = statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Returns the bytes of the disk of `folder`, free or not.
pub fn whole_disk(folder: &Path) -> io::Result<u64> {
    let disk = statvfs(folder)?;
    Ok(disk.f_blocks.saturating_mul(disk.f_frsize))
}
