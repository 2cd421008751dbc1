//! The disk of the cache: its space for a cache of full size, and the space of files that the cache has deleted.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use longhaul_config::units::Bytes;
use longhaul_observe::free_disk;
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

/// Returns the bytes to which a cache in `folder` can grow. They are the free bytes of the disk of `existing`, and those
/// that the cache already uses.
fn for_cache(existing: &Path, folder: &Path) -> io::Result<u64> {
    Ok(free_disk(existing)?.saturating_add(used(folder)))
}

/// Deleted files of fewer bytes are no reason to exchange an Envoy.
const FEW_DELETED: u64 = 64 << 20;

/// Returns a reason to exchange the Envoy with process `pid`, whose cache is in `folder` and may have `size`.
///
/// Envoy keeps the file of a cached object open, also after the object made room for another one. Such a file has no name,
/// so nobody sees it, but it takes space until Envoy ends. These files may take as much as the cache, and no more than
/// what is still free.
pub(super) fn too_much_deleted(pid: u32, folder: &Path, size: Bytes) -> Option<String> {
    let deleted = deleted(pid, folder);
    let free = free_disk(folder).ok()?;
    (deleted > most_deleted(size, free)).then(|| {
        format!(
            "Envoy holds {} of deleted files of its cache of {size} open, and the disk has {} left",
            Bytes(deleted),
            Bytes(free)
        )
    })
}

fn most_deleted(size: Bytes, free: u64) -> u64 {
    size.0.min(free).max(FEW_DELETED)
}

/// Returns the bytes of deleted files of `folder` that process `pid` has open. None that this user may not see.
fn deleted(pid: u32, folder: &Path) -> u64 {
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let bytes = files.filter_map(|file| {
        if !fs::read_link(file.path()).ok()?.starts_with(&folder) {
            return None;
        }
        // Follows the link to the open file. Its path says nothing: a file that was made without a name keeps such a path.
        let file = fs::metadata(file.path()).ok()?;
        // What it takes on the disk is less than its length, if it has holes.
        (file.nlink() == 0).then(|| file.blocks().saturating_mul(512))
    });
    bytes.sum()
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
    fn deleted_files_that_are_open_are_counted_and_files_with_a_name_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let held: Vec<_> = ["one", "two"]
            .map(|name| {
                let mut file = fs::File::create(folder.path().join(name)).unwrap();
                io::Write::write_all(&mut file, &vec![1; 64 << 10]).unwrap();
                file.sync_all().unwrap();
                file
            })
            .into();
        assert_eq!(deleted(own, folder.path()), 0);
        fs::remove_file(folder.path().join("one")).unwrap();
        let of_one = deleted(own, folder.path());
        assert!((64 << 10..128 << 10).contains(&of_one), "{of_one}");
        assert_eq!(deleted(own, &folder.path().join("elsewhere")), 0);
        assert_eq!(too_much_deleted(own, folder.path(), Bytes(1)), None, "64 KiB are few");
        drop(held);
        assert_eq!(deleted(own, folder.path()), 0);
    }

    #[test]
    fn deleted_files_may_take_as_much_as_the_cache_and_as_is_free() {
        let gib = 1 << 30;
        assert_eq!(most_deleted(Bytes(gib), 100 * gib), gib);
        assert_eq!(most_deleted(Bytes(gib), gib / 2), gib / 2);
        // A small cache must not exchange Envoy all the time.
        assert_eq!(most_deleted(Bytes(16 << 20), 100 * gib), FEW_DELETED);
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
