//! Reads of stored files.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;

use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::head::{HeadError, MAX_HEAD, Placed, decode};

/// The bytes that one read fetches: the head of nearly every response, with the body of a small one.
const START: usize = 16 * 1024;
/// How often a torn head is read again. Another process may be writing over it.
const TRIES: usize = 3;

/// The choice if a read may wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Waits for the disk.
    Disk,
    /// Gives an error of the kind `WouldBlock` for bytes that are not in the page cache.
    Never,
}

/// Reads bytes that are in the page cache. `None`: the read would wait for the disk. Fewer bytes than asked: the rest would
/// wait, or the file ends. 0: the file ends at `at`.
///
/// # Errors
/// Errors of the disk. A file system that cannot tell gives `None`.
pub(crate) fn read_now(file: &File, at: u64, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        match preadv2(file, &mut [IoSliceMut::new(buffer)], at, ReadWriteFlags::NOWAIT) {
            Ok(count) => return Ok(Some(count)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads until the buffer is full or the file ends. Returns how many bytes came.
pub(crate) fn read_full(file: &File, at: u64, buffer: &mut [u8], wait: Wait) -> io::Result<usize> {
    let mut have = 0;
    while let Some(rest) = buffer.get_mut(have..).filter(|rest| !rest.is_empty()) {
        let from = at.saturating_add(have as u64);
        let count = match wait {
            Wait::Never => read_now(file, from, rest)?.ok_or(io::ErrorKind::WouldBlock)?,
            Wait::Disk => match file.read_at(rest, from) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            },
        };
        if count == 0 {
            break;
        }
        have += count;
    }
    Ok(have)
}

/// The reason why a file gives no response.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The file is shorter than its head says. It stays so.
    Torn,
    /// The head cannot be read. It may be in the making, or of a later version.
    Head(HeadError),
    /// The disk does not give the bytes.
    Disk(io::Error),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// A head, and the first bytes of its file.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) placed: Placed,
    bytes: Vec<u8>,
}

impl Start {
    /// Reads the head of a file of `size` bytes.
    pub(crate) fn read(file: &File, size: u64, wait: Wait) -> Result<Self, Broken> {
        let mut tries = 1;
        let start = loop {
            match Self::read_once(file, size, wait) {
                Err(Broken::Head(HeadError::Torn | HeadError::Malformed)) if tries < TRIES => {
                    tries += 1;
                    std::thread::yield_now();
                }
                result => break result?,
            }
        };
        if size < start.placed.end() { Err(Broken::Torn) } else { Ok(start) }
    }

    fn read_once(file: &File, size: u64, wait: Wait) -> Result<Self, Broken> {
        let most = |count: usize| usize::try_from(size).unwrap_or(count).min(count);
        let mut bytes = vec![0; most(START)];
        let have = read_full(file, 0, &mut bytes, wait)?;
        bytes.truncate(have);
        if have == START && matches!(decode(&bytes), Err(HeadError::Short)) {
            bytes.resize(most(MAX_HEAD), 0);
            let rest = bytes.get_mut(have..).unwrap_or_default();
            let more = read_full(file, have as u64, rest, wait)?;
            bytes.truncate(have + more);
        }
        match decode(&bytes) {
            Ok(placed) => Ok(Self { placed, bytes }),
            Err(HeadError::Short) => Err(Broken::Torn),
            Err(error) => Err(Broken::Head(error)),
        }
    }

    /// Reads the whole body into memory.
    pub(crate) fn body(&self, file: &File, wait: Wait) -> Result<Vec<u8>, Broken> {
        let Placed { head, body_at, .. } = &self.placed;
        let length = usize::try_from(head.length).map_err(|_| Broken::Torn)?;
        let from = usize::try_from(*body_at).map_err(|_| Broken::Torn)?;
        if let Some(body) = self.bytes.get(from..).and_then(|rest| rest.get(..length)) {
            return Ok(body.to_vec());
        }
        let mut body = vec![0; length];
        let have = read_full(file, *body_at, &mut body, wait)?;
        if have == length { Ok(body) } else { Err(Broken::Torn) }
    }
}
