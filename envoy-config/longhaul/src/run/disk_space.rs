//! The space on the disk of the cache for a cache of full size.

use std::fs;
use std::io;
use std::path::Path;

use longhaul_config::Bytes;
use longhaul_observe::Disk;
use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::error::RunError;

/// Returns the reason why `folder` cannot hold a cache of `size`. Makes nothing. If the folder does not exist, the nearest
/// folder above it decides.
pub(super) fn refusal(folder: &Path, size: Bytes) -> Option<RunError> {
    let unusable = |error| Some(RunError::CacheFolder { path: folder.to_owned(), error });
    let Some(existing) = folder.ancestors().find(|path| path.symlink_metadata().is_ok()) else {
        return unusable(io::ErrorKind::NotFound.into());
    };
    if !existing.is_dir() {
        return unusable(Errno::NOTDIR.into());
    }
    if let Err(error) = access(existing, Access::WRITE_OK | Access::EXEC_OK) {
        return unusable(error.into());
    }
    match for_cache(existing, folder) {
        Err(error) => unusable(error),
        Ok(room) if room < size.0 => Some(RunError::CacheTooLarge { path: folder.to_owned(), size, room: Bytes(room) }),
        Ok(_) => None,
    }
}

/// Returns the size of the disk that `folder` is on, or the nearest folder above it that exists.
pub(super) fn of_disk(folder: &Path) -> io::Result<Bytes> {
    let existing = folder.ancestors().find(|path| path.exists()).ok_or(io::ErrorKind::NotFound)?;
    Disk::of(existing).map(|disk| Bytes(disk.whole))
}

/// Returns the bytes to which a cache in `folder` can grow. They are the free bytes of the disk of `existing`, and those
/// that the cache already uses.
fn for_cache(existing: &Path, folder: &Path) -> io::Result<u64> {
    Ok(Disk::of(existing)?.free.saturating_add(used(folder)))
}

/// Returns the bytes of the files below `folder`. A file that disappears meanwhile counts as empty.
fn used(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).map(|entries| entries.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let sizes = entries.iter().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => used(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_that_are_cached_already_count_as_room() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/one"), [0; 1000]).unwrap();
        fs::write(folder.path().join("two"), [0; 500]).unwrap();
        assert_eq!(used(folder.path()), 1500);
        assert!(for_cache(folder.path(), folder.path()).unwrap() > 1500);
    }

    #[test]
    fn a_folder_that_cannot_hold_the_cache_is_refused_and_none_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("new/cache");
        assert!(refusal(&below, Bytes(1 << 20)).is_none());
        let large = refusal(&below, Bytes(1 << 60)).unwrap().to_string();
        assert!(large.contains("`cache.size` is") && large.contains("free"), "{large}");
        assert!(!folder.path().join("new").exists());
        fs::write(folder.path().join("file"), "").unwrap();
        let file = refusal(&folder.path().join("file/cache"), Bytes(1)).unwrap().to_string();
        assert!(file.contains("cannot use the folder") && file.contains("Not a directory"), "{file}");
    }
}
