//! The configurations of a box, the present one first.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::json;

use super::configuration::{Came, Configuration};
use crate::table::table;

/// The digits of a hash that a person compares.
const SHORT_HASH: usize = 8;

/// The configurations of a box, the last one to come into force first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// They.
    pub configurations: Vec<Configuration>,
}

impl History {
    /// The name of the folder, in the folder `kept` of the state folder.
    pub const FOLDER: &str = "history";
    /// The longest record that is read or written, in bytes. A longer configuration is not kept.
    pub const MAX_BYTES: u64 = 1 << 20;
    /// The configurations that are kept. Junos keeps as many.
    const KEPT: usize = 50;

    /// Reads the records in `folder`. One that cannot be read as such is skipped.
    ///
    /// # Errors
    /// The folder does not exist, or this user may not read it.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut configurations: Vec<Configuration> = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let is_record =
                fs::symlink_metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= Self::MAX_BYTES);
            if is_record && path.extension().is_some_and(|end| end == "json") {
                configurations.extend(serde_json::from_slice::<Configuration>(&fs::read(&path)?).ok());
            }
        }
        configurations.sort_by_key(|one| std::cmp::Reverse(one.number));
        Ok(Self { configurations })
    }

    /// Returns the configuration with `text` in `file`, which comes into force at `now`, in seconds since 1970. `is_start`: a
    /// run starts with it. The same one again, after a restart, is no new one, and `text` is not called. None: there is no
    /// text.
    pub fn next(
        &self,
        now: u64,
        version: &str,
        (file, sha256): (&Path, &str),
        is_start: bool,
        text: impl FnOnce() -> Option<String>,
    ) -> Option<Configuration> {
        let last = self.configurations.first().filter(|last| last.file == file);
        let is_same = last.is_some_and(|last| last.sha256 == sha256);
        if let Some(last) = last.filter(|last| is_same && last.version == version) {
            let mut again = last.clone();
            again.resume(now);
            return Some(again);
        }
        Some(Configuration {
            number: self.configurations.first().map_or(0, |last| last.number) + 1,
            file: file.to_owned(),
            came: match is_start {
                true if is_same => Came::Version,
                true => Came::Start,
                false => Came::Change,
            },
            version: version.to_owned(),
            began: now,
            seen: now,
            served_s: 0,
            problem_s: 0,
            problems: Vec::new(),
            standing: Vec::new(),
            sha256: sha256.to_owned(),
            text: text()?,
        })
    }

    /// Returns the file of the configuration `number` in `folder`.
    #[must_use]
    pub fn path(folder: &Path, number: u32) -> PathBuf {
        folder.join(format!("{number}.json"))
    }

    /// Returns the numbers that are too old to be kept.
    #[must_use]
    pub fn outdated(&self) -> Vec<u32> {
        self.configurations.iter().skip(Self::KEPT).map(|one| one.number).collect()
    }

    /// Returns the configuration `number`.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Configuration> {
        self.configurations.iter().find(|one| one.number == number)
    }

    /// Returns the last configuration that was in force and differs from a file with the hash `sha256`. So a file that was
    /// refused, or that nothing started with, goes back to the one before it.
    #[must_use]
    pub fn before(&self, sha256: &str) -> Option<&Configuration> {
        self.configurations.iter().find(|one| one.sha256 != sha256)
    }

    /// Returns how the configuration at `index` came, in words: it is why the one before it was replaced.
    fn came(&self, index: usize) -> String {
        let Some(one) = self.configurations.get(index) else { return String::new() };
        let earlier = self.configurations.get(index + 1..).unwrap_or_default();
        let before = earlier.first();
        let how = match one.came {
            Came::Version => format!("start of version {}", one.version),
            Came::Start if before.is_none() => "start".to_owned(),
            Came::Start => "start with another file".to_owned(),
            Came::Change => "change of the file".to_owned(),
        };
        let is_new = before.is_none_or(|before| before.sha256 != one.sha256);
        match earlier.iter().find(|other| is_new && other.sha256 == one.sha256) {
            Some(same) => format!("{how}, back to {}", same.number),
            None => how,
        }
    }

    /// Returns the list as a table of `width` columns.
    #[must_use]
    pub fn table(&self, width: usize) -> String {
        let row = |(index, one): (usize, &Configuration)| {
            vec![
                one.number.to_string(),
                utc(one.began),
                one.sha256.get(..SHORT_HASH).unwrap_or(&one.sha256).to_owned(),
                self.came(index),
                one.health(),
            ]
        };
        let rows: Vec<_> = self.configurations.iter().enumerate().map(row).collect();
        table(&["number", "in force since (UTC)", "sha256", "came by", "health"], &rows, width)
    }

    /// Returns the list as JSON, without the texts.
    #[must_use]
    pub fn json(&self) -> String {
        let one = |(index, one): (usize, &Configuration)| {
            let by = index.checked_sub(1).and_then(|next| self.configurations.get(next).map(|next| next.number));
            json!({
                "number": one.number, "file": one.file, "sha256": one.sha256, "version": one.version,
                "in_force_since": one.began, "seen": one.seen, "came": one.came, "came_by": self.came(index),
                "replaced_by": by, "why_replaced": index.checked_sub(1).map(|next| self.came(next)),
                "healthy": one.was_healthy(), "served_s": one.served_s, "problem_s": one.problem_s,
                "problems": one.problems, "standing": one.standing,
            })
        };
        json!(self.configurations.iter().enumerate().map(one).collect::<Vec<_>>()).to_string()
    }
}

/// Returns a time in seconds since 1970, such as `2026-11-22 19:30:00`.
fn utc(at: u64) -> String {
    // A time beyond what the format can write is a fault of the clock.
    const LAST: u64 = 253_402_300_799;
    let text = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(at.min(LAST))).to_string();
    text.replace('T', " ").trim_end_matches('Z').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::configuration::tests::configuration;
    use super::*;

    fn history() -> History {
        let first = Configuration { came: Came::Start, ..configuration(1, "a") };
        let upgraded = Configuration { came: Came::Version, ..configuration(4, "a") };
        History { configurations: vec![upgraded, configuration(3, "a"), configuration(2, "b"), first] }
    }

    #[test]
    fn each_says_how_it_came_and_which_earlier_one_it_is() {
        let history = history();
        let came: Vec<String> = (0..4).map(|index| history.came(index)).collect();
        assert_eq!(came, ["start of version 0.2.0", "change of the file, back to 1", "change of the file", "start"]);
        let json: serde_json::Value = serde_json::from_str(&history.json()).unwrap();
        assert_eq!((&json[0]["why_replaced"], &json[0]["replaced_by"]), (&json!(null), &json!(null)));
        assert_eq!(
            (&json[2]["why_replaced"], &json[2]["replaced_by"]),
            (&json!("change of the file, back to 1"), &json!(3))
        );
        assert!(history.table(120).contains("4       1970-01-01 00:00:00   hash of   start of version 0.2.0"));
    }

    #[test]
    fn the_next_one_is_the_same_again_or_says_how_it_came() {
        let next = |history: &History, version: &str, text: &str, is_start| {
            let (file, sha256) = (Path::new("/box.yaml"), format!("hash of {text}"));
            history.next(90, version, (file, &sha256), is_start, || Some(text.to_owned())).unwrap()
        };
        let first = next(&History::default(), "0.1.0", "a", true);
        assert_eq!((first.number, first.came), (1, Came::Start));
        let history = History { configurations: vec![first] };
        assert_eq!(next(&history, "0.1.0", "a", true).number, 1);
        for (version, text, is_start, came) in [
            ("0.2.0", "a", true, Came::Version),
            ("0.1.0", "b", true, Came::Start),
            ("0.1.0", "b", false, Came::Change),
        ] {
            let next = next(&history, version, text, is_start);
            assert_eq!((next.number, next.came), (2, came), "{version} {text}");
        }
    }

    #[test]
    fn the_former_one_is_the_last_that_differs_from_the_file() {
        let history = history();
        let before = |hash: &str| history.before(hash).map(|one| one.number);
        assert_eq!(before("hash of a"), Some(2));
        assert_eq!(before("hash of a refused file"), Some(4));
        assert_eq!(History::default().before("x"), None);
    }

    #[test]
    fn records_are_read_from_files_and_what_is_none_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        assert!(History::read(&folder.path().join("missing")).is_err());
        for one in history().configurations {
            fs::write(History::path(folder.path(), one.number), serde_json::to_vec(&one).unwrap()).unwrap();
        }
        fs::write(folder.path().join("9.json"), "{").unwrap();
        fs::write(folder.path().join("notes.txt"), "x").unwrap();
        let read = History::read(folder.path()).unwrap();
        assert_eq!(read, history());
        assert_eq!((read.get(3).map(|one| one.text.as_str()), read.get(9)), (Some("a"), None));
        assert_eq!(read.outdated(), Vec::<u32>::new());
        let many = History { configurations: vec![configuration(7, "a"); History::KEPT + 2] };
        assert_eq!(many.outdated(), [7, 7]);
    }
}
