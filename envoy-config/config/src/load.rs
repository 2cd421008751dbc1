//! Loads a configuration file: returns checked settings, or all problems of the file.

use std::io;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;
use std::{env, fs};

use sha2::{Digest, Sha256};

use super::diagnostic::{FileHashes, Problem, Report, Severity};
use super::reader::Reader;
use super::settings::Settings;
use super::yaml::NodeValue;
use super::{contradictions, implausible, no_effect, read, slips, yaml};

/// An accepted file.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Its settings.
    pub settings: Settings,
    /// Its warnings. There are no errors among them.
    pub report: Report,
    /// Every file that was read for it, with the SHA-256 of its content.
    pub read: FileHashes,
}

/// The reason why a file was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file itself cannot be read.
    #[error("error: cannot read the configuration file {}: {error}", path.display())]
    Unreadable {
        /// The path as the operator wrote it.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The file has errors. The report holds at least one.
    #[error("{0}")]
    Refused(Report),
}

impl Report {
    /// Returns a problem with the value of `key`, such as `listen.http`. None if the file does not set it.
    pub fn problem_of(&self, severity: Severity, key: &str, title: &str) -> Option<Problem> {
        let mut node = yaml::parse(&self.text, &mut Vec::new())?;
        for step in key.split('.') {
            node = node.entry(step)?.node.clone();
        }
        Some(Problem { severity, ..Problem::error(title, node.place, "set here") })
    }
}

/// Reads and checks the file at `path` and the files that it names.
pub fn load(path: &Path) -> Result<Loaded, LoadError> {
    load_as(path, path)
}

/// Reads and checks the file at `path` as the content of `place`, where it will be put. Relative paths in it start there.
pub fn load_as(path: &Path, place: &Path) -> Result<Loaded, LoadError> {
    let bytes = fs::read(path).map_err(|error| LoadError::Unreadable { path: path.to_owned(), error })?;
    let text = String::from_utf8(bytes).map_err(|error| LoadError::Unreadable {
        path: path.to_owned(),
        error: io::Error::new(io::ErrorKind::InvalidData, not_utf8(&error)),
    })?;
    load_text(place, text)
}

/// Returns the reason why a file is not text, with the line of the first bad byte.
fn not_utf8(error: &FromUtf8Error) -> String {
    match error.as_bytes() {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it is UTF-16 text; save it as UTF-8".to_owned(),
        bytes => {
            let valid = bytes.iter().take(error.utf8_error().valid_up_to());
            let line = valid.filter(|byte| **byte == b'\n').count() + 1;
            format!("line {line} is not UTF-8 text; save the file as UTF-8")
        }
    }
}

/// Checks `text` as the content of `path`. Relative paths in it start from the folder of `path`.
pub fn load_text(path: &Path, text: String) -> Result<Loaded, LoadError> {
    let file = absolute(path);
    let folder = file.parent().unwrap_or(Path::new("/")).to_owned();
    let mut reader = Reader::new(folder);
    reader.read.insert(file.clone(), Sha256::digest(&text).into());
    let settings = yaml::parse(&text, &mut reader.problems).and_then(|root| {
        if let (NodeValue::Scalar(_), Some(slip)) = (&root.value, slips::of_no_keys(&text)) {
            reader.problems.push(slip);
            return None;
        }
        let line_of = |offset: usize| text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1;
        let draft = read::read(&mut reader, &root, &line_of)?;
        contradictions::check(&root, &draft, &mut reader.problems);
        no_effect::check(&root, &draft, &mut reader.problems);
        implausible::check(&root, &draft, &file, &mut reader.problems);
        draft.settings(file)
    });
    let read = reader.read;
    let report = Report::new(path.to_owned(), text, reader.problems);
    match settings {
        Some(settings) if !report.has_errors() => Ok(Loaded { settings, report, read }),
        _ => Err(LoadError::Refused(report)),
    }
}

fn absolute(path: &Path) -> PathBuf {
    env::current_dir().map_or_else(|_| path.to_owned(), |current| current.join(path))
}
