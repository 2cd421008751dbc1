//! Puts a rendered tree in place so that Envoy sees whole files, and only those that changed.
//!
//! Envoy notices a file only when it is moved into a watched folder. So a file that differs is written beside the old
//! one and renamed. A file that is the same is left alone, because Envoy would read it again.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use longhaul_render::RenderedTree;

use super::envoy;
use crate::replaced_file;

/// The result of writing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// The paths below the root that were created or replaced, in this order.
    pub changed: Vec<String>,
}

/// A file could not be put in place.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {error}", path.display())]
pub(crate) struct WriteError {
    /// The path.
    pub path: PathBuf,
    /// The system's reason.
    pub error: io::Error,
}

/// The disk of the rendered tree.
pub(super) trait Disk {
    /// Returns true if there is a file at `path`.
    fn has(&self, path: &Path) -> bool;

    /// Reads a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Replaces a file as a whole, and makes its folder.
    fn replace(&mut self, path: &Path, bytes: &[u8]) -> Result<(), WriteError>;
}

/// The disk of this machine.
struct MachineDisk;

impl Disk for MachineDisk {
    fn has(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    /// A rendered tree is public.
    fn replace(&mut self, path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
        make_folder(path.parent().unwrap_or(Path::new("/")))?;
        replaced_file::replace(path, bytes, 0o644).map_err(|error| WriteError { path: path.to_owned(), error })
    }
}

/// Writes `tree` below `root` on the disk of this machine, as [`write_tree_to`] does.
pub(crate) fn write_tree(root: &Path, tree: &RenderedTree) -> Result<Written, WriteError> {
    make_folder(root)?;
    write_tree_to(&mut MachineDisk, root, tree)
}

/// Writes `tree` below `root` in the order that a running Envoy needs. Leaves all other files in the folder alone.
pub(super) fn write_tree_to(disk: &mut impl Disk, root: &Path, tree: &RenderedTree) -> Result<Written, WriteError> {
    let mut written = Written::default();
    for module in &tree.modules {
        let to = root.join(&module.to);
        // The name of a module contains its hash, so a file of this name is the same module.
        if !disk.has(&to) {
            let bytes = disk.read(&module.from).map_err(|error| WriteError { path: module.from.clone(), error })?;
            disk.replace(&to, &bytes)?;
            written.changed.push(module.to.clone());
        }
    }
    for (path, text) in tree.in_apply_order() {
        let to = root.join(path);
        if disk.read(&to).is_ok_and(|present| present == text.as_bytes()) {
            continue;
        }
        disk.replace(&to, text.as_bytes())?;
        written.changed.push(path.to_owned());
    }
    Ok(written)
}

/// Removes the files of former trees from the folders in which Envoy watches, before Envoy starts. While one runs, they
/// stay: its listeners that drain read them, and a file that is gone would count as a refusal of the next change.
pub(super) fn remove_former(root: &Path, tree: &RenderedTree) {
    let folders: BTreeSet<&Path> = tree.files.keys().filter_map(|path| Path::new(path).parent()).collect();
    for folder in folders.into_iter().filter(|folder| !folder.as_os_str().is_empty()) {
        for entry in fs::read_dir(root.join(folder)).into_iter().flatten().flatten() {
            let path = folder.join(entry.file_name());
            if path.to_str().is_some_and(|path| envoy::is_watched(path) && !tree.files.contains_key(path)) {
                // Nobody reads a file that stays.
                let _ = fs::remove_file(root.join(path));
            }
        }
    }
}

pub(super) fn make_folder(path: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(path).map_err(|error| WriteError { path: path.to_owned(), error })
}
