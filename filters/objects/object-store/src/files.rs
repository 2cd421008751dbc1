//! The folder of the store: `ab/<32 digits>` for responses, `new/` for files in the making.
//!
//! Every name is opened relative to a descriptor, and no symbolic link is followed. So a user who swaps a folder or a
//! file makes the store miss, and does not lead it elsewhere.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{
    self, AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT,
    flock,
};
use rustix::io::Errno;

use crate::key::Key;
use crate::read::{Broken, Start, Wait};

const NEW: &str = "new";
/// A file in `new/` that was not written for so long, and that no process has open, is a leftover.
const LEFTOVER: Duration = Duration::from_hours(1);

/// The facts that a file system has about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) inode: u64,
    pub(crate) size: u64,
    /// Bytes on disk. An empty file counts as well: it takes an inode.
    pub(crate) bytes: u64,
    modified: (i64, u64),
    accessed: (i64, u64),
    is_file: bool,
    pub(crate) is_named: bool,
}

impl From<&Stat> for About {
    fn from(stat: &Stat) -> Self {
        Self {
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            bytes: u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512).max(512),
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            accessed: (stat.st_atime, stat.st_atime_nsec),
            is_file: FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile,
            is_named: stat.st_nlink > 0,
        }
    }
}

impl About {
    /// Returns true if the file was read within `time` before `now`, and after it was written.
    pub(crate) fn was_read(&self, now: SystemTime, time: Duration) -> bool {
        let now_s = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let read_s = u64::try_from(self.accessed.0).unwrap_or(0);
        self.accessed > self.modified && read_s.saturating_add(time.as_secs()) >= now_s
    }
}

/// Returns true if the error says that there is no file of the store under a name.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ISDIR))
}

/// Returns the name of a key's file in the folder.
fn name(key: Key) -> String {
    format!("{}/{key}", key.folder())
}

/// Asks about an open file.
pub(crate) fn about(file: &File) -> io::Result<About> {
    Ok(About::from(&fs::fstat(file)?))
}

/// Which file lies under a key, and when it was written last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version(u64, u64, (i64, u64));

impl From<About> for Version {
    fn from(about: About) -> Self {
        Self(about.inode, about.size, about.modified)
    }
}

/// The folder of a store, open. It needs no index, and so serves readers in other processes as well.
#[derive(Debug)]
pub struct Folder {
    root: OwnedFd,
    run: u64,
    number: AtomicU64,
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }
}

impl Folder {
    /// Opens the folder of a store. Another process fills it.
    ///
    /// # Errors
    /// The folder is missing, is a symbolic link, belongs to another user, or others may enter it. The text says which.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let root = fs::open(path, flags, Mode::empty()).map_err(|error| {
            let reason = "no folder, or a symbolic link, or not readable";
            io::Error::new(io::Error::from(error).kind(), format!("{}: {reason}: {error}", path.display()))
        })?;
        let stat = fs::fstat(&root)?;
        let refuse = |reason: String| {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{}: {reason}", path.display())))
        };
        let user = rustix::process::geteuid().as_raw();
        if stat.st_uid != user {
            return refuse(format!("belongs to user {}, and this process to {user}", stat.st_uid));
        }
        if stat.st_mode & 0o077 != 0 {
            return refuse(format!("has mode {:04o}, which must be 0700: others may enter", stat.st_mode & 0o7777));
        }
        // Process ids recur in containers that share a folder. The time makes names differ, and O_EXCL guards the rest.
        let run = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos().into());
        Ok(Self { root, run, number: AtomicU64::new(0) })
    }

    /// Opens the folder of a store, or makes it. Its parent must exist.
    ///
    /// # Errors
    /// The folder cannot be made or opened, belongs to another user, or others may enter it. The text has the reason.
    pub fn make(path: &Path) -> io::Result<Self> {
        match std::fs::DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display())));
            }
            _ => {}
        }
        let folder = Self::open(path)?;
        folder.make_sub(NEW)?;
        Ok(folder)
    }

    fn make_sub(&self, name: &str) -> io::Result<()> {
        match fs::mkdirat(&self.root, name, Mode::RWXU) {
            Err(Errno::EXIST) => Ok(()),
            result => Ok(result?),
        }
    }

    fn sub(&self, name: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(fs::openat(&self.root, name, flags, Mode::empty())?)
    }

    /// Opens the file of a key. `None` if there is none.
    pub(crate) fn find(&self, key: Key, extra: OFlags) -> io::Result<Option<(File, About)>> {
        // Without NONBLOCK, the opening of a pipe waits for its other end.
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | extra;
        let open = || -> io::Result<_> {
            let file = File::from(fs::openat(self.sub(&key.folder())?, key.to_string(), flags, Mode::empty())?);
            let about = about(&file)?;
            if about.is_file { Ok((file, about)) } else { Err(io::ErrorKind::InvalidData.into()) }
        };
        match open() {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a file, and reads its head. `None` if there is none.
    ///
    /// With [`Wait::Never`], the error has the kind `WouldBlock` where the head is not in the page cache. The lookup of the
    /// name may wait nevertheless.
    pub(crate) fn peek(&self, key: Key, wait: Wait) -> Result<Option<(File, About, Start)>, Broken> {
        let Some((file, about)) = self.find(key, OFlags::RDONLY)? else { return Ok(None) };
        let start = Start::read(&file, about.size, wait)?;
        Ok(Some((file, about, start)))
    }

    /// Notes for other processes that a response was used. Their clock passes it over ([`About::was_read`]).
    pub(crate) fn note_use(&self, key: Key) {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: Timespec { tv_nsec: UTIME_OMIT, ..now } };
        // A use that is not noted may cost the response its place, and nothing else.
        let _ = fs::utimensat(&self.root, name(key), &times, AtFlags::SYMLINK_NOFOLLOW);
    }

    /// Returns the version of the file of a key, in one call of the system. `None` if there is none.
    pub(crate) fn version(&self, key: Key) -> Option<Version> {
        self.stat(key).ok().map(Version::from)
    }

    /// Asks about the file of a key. It follows a swapped folder, but opens nothing.
    pub(crate) fn stat(&self, key: Key) -> io::Result<About> {
        Ok(About::from(&fs::statat(&self.root, name(key), AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Removes the name of a key.
    pub(crate) fn remove(&self, key: Key) -> io::Result<()> {
        Ok(fs::unlinkat(self.sub(&key.folder())?, key.to_string(), AtFlags::empty())?)
    }

    /// Makes a file that has no key yet, and returns its name. The file stays locked while it is open.
    pub(crate) fn create(&self) -> io::Result<(String, File)> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let number = self.number.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{:08x}-{number}", std::process::id(), self.run);
            let open = || fs::openat(self.sub(NEW)?, &name, flags, Mode::RUSR | Mode::WUSR).map_err(io::Error::from);
            let made = match open() {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                // Somebody emptied the folder.
                Err(error) if error.kind() == io::ErrorKind::NotFound => self.make_sub(NEW).and_then(|()| open())?,
                made => made?,
            };
            if let Err(error) = flock(&made, FlockOperation::NonBlockingLockExclusive) {
                self.discard(&name);
                return Err(error.into());
            }
            return Ok((name, File::from(made)));
        }
    }

    /// Gives a new file its key, and removes what lay there.
    pub(crate) fn publish(&self, name: &str, key: Key) -> io::Result<()> {
        let folder = key.folder();
        let rename =
            || -> io::Result<()> { Ok(fs::renameat(self.sub(NEW)?, name, self.sub(&folder)?, key.to_string())?) };
        match rename() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_sub(&folder)?;
                rename()
            }
            result => result,
        }
    }

    /// Removes a new file.
    pub(crate) fn discard(&self, name: &str) {
        // What cannot be removed is a leftover, which a later run removes.
        let _ = self.sub(NEW).and_then(|new| Ok(fs::unlinkat(new, name, AtFlags::empty())?));
    }

    /// Removes files in the making whose process is gone. Two programs may share the folder, so the files that one of
    /// them has open stay.
    pub(crate) fn sweep(&self) -> io::Result<()> {
        let new = fs::openat(&self.root, NEW, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        for entry in Dir::read_from(&new)? {
            let entry = entry?;
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let Ok(file) = fs::openat(&new, entry.file_name(), flags, Mode::empty()).map(File::from) else { continue };
            let Ok(about) = about(&file) else { continue };
            let age = now.saturating_sub(u64::try_from(about.modified.0).unwrap_or(0));
            // The age alone would depend on the clock. The lock alone would miss a file that is not locked yet.
            let is_old = about.is_file && age >= LEFTOVER.as_secs();
            if is_old && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                let _ = fs::unlinkat(&new, entry.file_name(), AtFlags::empty());
            }
        }
        Ok(())
    }

    /// Passes on the key of every file, in the order of the file system.
    pub(crate) fn walk(&self, mut each: impl FnMut(Key)) -> io::Result<()> {
        for first in 0..=u8::MAX {
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let sub = match fs::openat(&self.root, format!("{first:02x}"), flags, Mode::empty()) {
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                sub => sub?,
            };
            for entry in Dir::read_from(&sub)? {
                let entry = entry?;
                if let Some(key) = entry.file_name().to_str().ok().and_then(Key::from_name) {
                    each(key);
                }
            }
        }
        Ok(())
    }
}
