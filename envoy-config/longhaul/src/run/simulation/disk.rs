//! The disk of the rendered tree, which may be full.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::super::tree::{Disk, WriteError};

/// The files by their paths.
#[derive(Debug, Default)]
pub(super) struct SimDisk {
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// The number of files that it has room for. None: any.
    pub(super) room: Option<u8>,
    /// The files that were put in place and that nobody has noticed.
    pub(super) renamed: Vec<String>,
}

impl SimDisk {
    /// Returns the text of a file.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(Path::new(path)).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// Returns every file with its text.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, bytes)| Some((path.to_str()?, std::str::from_utf8(bytes).ok()?)))
    }
}

impl Disk for SimDisk {
    fn has(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn replace(&mut self, path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
        match &mut self.room {
            Some(0) => {
                return Err(WriteError { path: path.to_owned(), error: io::ErrorKind::StorageFull.into() });
            }
            Some(room) => *room -= 1,
            None => {}
        }
        self.files.insert(path.to_owned(), bytes.to_vec());
        self.renamed.push(path.display().to_string());
        Ok(())
    }
}
