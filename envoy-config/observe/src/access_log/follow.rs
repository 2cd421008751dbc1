//! Reads the lines of a log file, and those that Envoy adds later.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A log file and the place in it up to which it was read. A rotated or truncated file is read from its beginning.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    file: File,
    /// The bytes of a line whose end Envoy has not written yet.
    begun: Vec<u8>,
}

impl Follower {
    /// Opens a file. Reads nothing yet.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: File::open(path)?, begun: Vec::new() })
    }

    /// Calls `each` with every line that is new and complete.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_new(&mut self, mut each: impl FnMut(&str)) -> io::Result<()> {
        self.read_rest(&mut each)?;
        // The old file of a rotation is read to its end first.
        if let Some(file) = self.replacement() {
            self.file = file;
            self.begun.clear();
            self.read_rest(&mut each)?;
        }
        Ok(())
    }

    fn read_rest(&mut self, each: &mut impl FnMut(&str)) -> io::Result<()> {
        if self.file.metadata()?.len() < self.file.stream_position()? {
            self.file.seek(SeekFrom::Start(0))?;
            self.begun.clear();
        }
        let mut chunk = vec![0; 1 << 16];
        loop {
            let read = self.file.read(&mut chunk)?;
            if read == 0 {
                return Ok(());
            }
            for byte in chunk.get(..read).unwrap_or_default() {
                if *byte == b'\n' {
                    each(&String::from_utf8_lossy(&self.begun));
                    self.begun.clear();
                } else {
                    self.begun.push(*byte);
                }
            }
        }
    }

    /// Returns the file that has the path now, if it is another one.
    fn replacement(&self) -> Option<File> {
        let now = File::open(&self.path).ok()?;
        let (held, found) = (self.file.metadata().ok()?, now.metadata().ok()?);
        ((held.dev(), held.ino()) != (found.dev(), found.ino())).then_some(now)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    fn new(follower: &mut Follower) -> Vec<String> {
        let mut lines = Vec::new();
        follower.read_new(|line| lines.push(line.to_owned())).unwrap();
        lines
    }

    #[test]
    fn lines_are_read_once_and_whole_and_through_rotations() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert!(Follower::open(&path).unwrap_err().to_string().contains("No such file"));
        fs::write(&path, "a\nb\nbeg").unwrap();
        let mut follower = Follower::open(&path).unwrap();
        assert_eq!(new(&mut follower), ["a", "b"]);
        assert!(new(&mut follower).is_empty());
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"un\nc\n").unwrap();
        assert_eq!(new(&mut follower), ["begun", "c"]);
        file.write_all(b"d\n").unwrap();
        fs::rename(&path, folder.path().join("log.1")).unwrap();
        fs::write(&path, "e\n").unwrap();
        assert_eq!(new(&mut follower), ["d", "e"]);
        fs::write(&path, "").unwrap();
        assert!(new(&mut follower).is_empty());
        fs::write(&path, "f\n").unwrap();
        assert_eq!(new(&mut follower), ["f"]);
    }
}
