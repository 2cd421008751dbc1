//! The room on a disk.

use std::io;
use std::path::Path;

use rustix::fs::statvfs;

/// A disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// Its free bytes.
    pub free: u64,
    /// Its bytes, free or not.
    pub whole: u64,
}

impl Disk {
    /// Returns the disk of `folder`.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let disk = statvfs(folder)?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Ok(Self { free: bytes(disk.f_bavail), whole: bytes(disk.f_blocks) })
    }
}
