//! Putting a rendered tree in place so that a watching program sees whole files, and only those that changed.
//!
//! Envoy notices a file only when it is moved into a watched folder. A file that differs is therefore written beside the
//! old one and renamed. A file that is the same is left alone, because Envoy would read it again.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::render::RenderedTree;

/// The result of writing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Paths below the root that were replaced or made, in the order it happened.
    pub changed: Vec<String>,
}

/// A file could not be put in place.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {error}", path.display())]
pub struct WriteError {
    /// Which.
    pub path: PathBuf,
    /// Why.
    pub error: io::Error,
}

/// Writes `tree` below `root` in the order a running Envoy needs. Files of an earlier tree that are in this one no more
/// are removed last; anything else in the folder is left alone.
pub fn write_tree(root: &Path, tree: &RenderedTree, earlier: Option<&RenderedTree>) -> Result<Written, WriteError> {
    let mut written = Written::default();
    make_folder(root)?;
    for module in tree.modules() {
        let to = root.join(&module.to);
        // Its name bears its hash: what is there under this name is it.
        if !to.is_file() {
            let bytes = fs::read(&module.from).map_err(|error| WriteError { path: module.from.clone(), error })?;
            replace(&to, &bytes)?;
            written.changed.push(module.to.clone());
        }
    }
    for (path, text) in tree.in_apply_order() {
        let to = root.join(path);
        if fs::read(&to).is_ok_and(|present| present == text.as_bytes()) {
            continue;
        }
        replace(&to, text.as_bytes())?;
        written.changed.push(path.to_owned());
    }
    if let Some(earlier) = earlier {
        remove_leftovers(root, tree, earlier)?;
    }
    Ok(written)
}

/// Old modules stay: streams under way may still be in them, and the way back to the previous tree needs them.
fn remove_leftovers(root: &Path, tree: &RenderedTree, earlier: &RenderedTree) -> Result<(), WriteError> {
    let kept: BTreeSet<&String> = tree.files().keys().collect();
    for path in earlier.files().keys().filter(|path| !kept.contains(path)) {
        let path = root.join(path);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(WriteError { path, error }),
            _ => {}
        }
    }
    Ok(())
}

fn replace(to: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let folder = to.parent().unwrap_or(Path::new("/"));
    make_folder(folder)?;
    let result = (|| {
        let mut file = tempfile::Builder::new().prefix(".longhaul-").tempfile_in(folder)?;
        file.write_all(bytes)?;
        make_readable(file.as_file())?;
        file.persist(to).map_err(|error| error.error)?;
        Ok(())
    })();
    result.map_err(|error| WriteError { path: to.to_owned(), error })
}

/// Temporary files are made for their owner alone; a rendered tree is there to be read, as umask would have left it.
pub(super) fn make_readable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

pub(super) fn make_folder(path: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(path).map_err(|error| WriteError { path: path.to_owned(), error })
}
