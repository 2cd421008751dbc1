//! Checks that a disk has space for a cache of its full size.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::statvfs;

/// Returns the bytes to which a cache in `folder` can grow: the free bytes and those that it already uses.
pub(super) fn for_cache(folder: &Path) -> io::Result<u64> {
    Ok(free(folder)?.saturating_add(used(folder)))
}

/// Returns the free bytes of the disk of `folder`.
pub(crate) fn free(folder: &Path) -> io::Result<u64> {
    let disk = statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
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
    fn what_the_cache_holds_already_counts_as_room() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/one"), [0; 1000]).unwrap();
        fs::write(folder.path().join("two"), [0; 500]).unwrap();
        assert_eq!(used(folder.path()), 1500);
        assert!(for_cache(folder.path()).unwrap() > 1500);
    }
}
