//! Open files with bodies.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ledger::Lease;
use crate::read::{Wait, read_full, read_now};

/// An open file with a body, complete or still growing. Clones share it. The store counts the file's bytes until the last
/// one is dropped, also if the file is removed meanwhile.
#[derive(Debug, Clone)]
pub struct Reader(Arc<Open>);

#[derive(Debug)]
struct Open {
    // First, so that it ends before the file is closed: afterwards another file may get the inode.
    lease: Lease,
    file: File,
    body_at: u64,
    length: AtomicU64,
}

impl Reader {
    pub(crate) fn new(lease: Lease, file: File, body_at: u64, length: u64) -> Self {
        Self(Arc::new(Open { lease, file, body_at, length: AtomicU64::new(length) }))
    }

    /// Returns how many bytes of the body are there. It grows while the file is filled.
    pub fn length(&self) -> u64 {
        self.0.length.load(Ordering::Acquire)
    }

    pub(crate) fn set_length(&self, length: u64) {
        self.0.length.store(length, Ordering::Release);
    }

    pub(crate) fn inode(&self) -> u64 {
        self.0.lease.inode
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        &self.0.file
    }

    /// Returns where the body begins in the file, in bytes.
    pub fn body_at(&self) -> u64 {
        self.0.body_at
    }

    /// Reads from the byte `at` of the body, and waits for the disk. Fewer bytes than asked: the rest is not there.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let part = self.part(at, buffer);
        read_full(&self.0.file, self.0.body_at.saturating_add(at), part, Wait::Disk)
    }

    /// Reads from the byte `at` of the body what is in the page cache. `None`: the disk would be waited for.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn read_now(&self, at: u64, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let part = self.part(at, buffer);
        if part.is_empty() {
            return Ok(Some(0));
        }
        read_now(&self.0.file, self.0.body_at.saturating_add(at), part)
    }

    /// Returns the part of the buffer that the body can fill.
    fn part<'a>(&self, at: u64, buffer: &'a mut [u8]) -> &'a mut [u8] {
        let left = usize::try_from(self.length().saturating_sub(at)).unwrap_or(usize::MAX).min(buffer.len());
        buffer.get_mut(..left).unwrap_or_default()
    }
}
