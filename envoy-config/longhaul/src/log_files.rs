//! The files of a log: the one that is written, and the rotated ones beside it.
//!
//! A rotated file has the time of its rotation behind its name: `access.log.20261122-194237`, in UTC. A second one of the
//! same second has a number behind that.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The digits of a day and of a time, around a hyphen.
const STAMP: (usize, usize) = (8, 6);

/// Returns the path to which `log` is rotated at `now`. Nothing has it.
pub(crate) fn rotated_path(log: &Path, now: SystemTime) -> PathBuf {
    let digits: String = since_text(now).chars().filter(char::is_ascii_digit).take(STAMP.0 + STAMP.1).collect();
    let (day, time) = digits.split_at_checked(STAMP.0).unwrap_or((&digits, ""));
    let path = |more: String| with_suffix(log, &format!(".{day}-{time}{more}"));
    let mut free = path(String::new());
    let mut number = 2_u32;
    while free.symlink_metadata().is_ok() {
        free = path(format!("-{number}"));
        number = number.saturating_add(1);
    }
    free
}

/// Returns the rotated files of `log`, the oldest first. Other files of the folder are none of them, whatever their
/// ending.
pub(crate) fn rotated_files(log: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (log.parent(), log.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_rotated = |path: &PathBuf| {
        let other = path.file_name().and_then(|other| other.to_str()).unwrap_or_default();
        let stamp = other.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
        stamp.is_some_and(is_stamp) && path.symlink_metadata().is_ok_and(|file| file.is_file())
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_rotated).collect();
    files.sort();
    files
}

/// Returns the files of `log` that may hold lines of `since` or later, the oldest first and `log` itself last.
pub(crate) fn files_since(log: &Path, since: SystemTime) -> Vec<PathBuf> {
    let is_young = |path: &PathBuf| {
        // The last line of a file is as old as the file.
        fs::metadata(path).and_then(|file| file.modified()).map_or(true, |modified| modified >= since)
    };
    let mut files: Vec<PathBuf> = rotated_files(log).into_iter().filter(is_young).collect();
    files.push(log.to_owned());
    files
}

/// Returns a time as the lines of the log have it: RFC 3339 in UTC, to which their text compares.
pub(crate) fn since_text(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// Returns true for `20261122-194237` and `20261122-194237-2`.
fn is_stamp(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut digits = |length: Option<usize>| {
        let part = parts.next();
        part.is_some_and(|part| {
            let fits = length.map_or(!part.is_empty(), |length| part.len() == length);
            fits && part.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let (day, time) = (digits(Some(STAMP.0)), digits(Some(STAMP.1)));
    let number = text.len() == STAMP.0 + 1 + STAMP.1 || digits(None);
    day && time && number && parts.next().is_none()
}

fn with_suffix(log: &Path, suffix: &str) -> PathBuf {
    let mut path = log.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_files_that_a_rotation_made_are_rotated_files() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("access.log");
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_376_557);
        let first = rotated_path(&log, now);
        assert_eq!(first, folder.path().join("access.log.20261122-194237"));
        fs::write(&first, "").unwrap();
        let second = rotated_path(&log, now);
        assert_eq!(second, folder.path().join("access.log.20261122-194237-2"));
        fs::write(&second, "").unwrap();
        for other in [
            "access.log",
            "access.log.1",
            "access.log.20261122-194237.gz",
            "other.log.20261122-194237",
            "access.log.20261122-194237-",
            "access.log.20261122-19423x",
        ] {
            fs::write(folder.path().join(other), "").unwrap();
        }
        fs::create_dir(folder.path().join("access.log.20270101-000000")).unwrap();
        assert_eq!(rotated_files(&log), [first.clone(), second.clone()]);
        assert_eq!(files_since(&log, SystemTime::UNIX_EPOCH), [first, second, log.clone()]);
        let later = SystemTime::now() + Duration::from_mins(1);
        assert_eq!(files_since(&log, later), [log]);
    }

    #[test]
    fn a_time_compares_as_text_with_those_of_lines() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_376_557_382);
        assert_eq!(since_text(time), "2026-11-22T19:42:37.382Z");
    }
}
