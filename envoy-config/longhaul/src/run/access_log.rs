//! The access log of a run: its destination, its rotation, and the end of old files.
//!
//! Envoy writes the lines. A file that Envoy cannot open would make it refuse every listener, so this program opens it
//! first, and serves without a log if it cannot. While a file is rotated, Envoy's lines go to the old file, and none is
//! lost. Envoy counts lines that a full disk refuses, and serves on.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use longhaul_config::{AccessLog, Log, LogWish};
use rustix::fs::OFlags;

use super::log::Level;
use super::say;
use crate::log_files::{rotated_files, rotated_path};

/// The name of the file in the folder for logs.
const NAME: &str = "access.log";
/// The folder that systemd makes for the unit's `LogsDirectory=`.
pub(crate) const SERVICE_FOLDER: &str = "/var/log/longhaul";
/// The variable with that folder.
const GIVEN_FOLDER: &str = "LOGS_DIRECTORY";
/// Writes of the owner and reads of its group, as systemd's `UMask=` of the unit has it.
const MODE: u32 = 0o640;
/// The time between two looks at the file.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The time between two looks at old files, and after a rotation that failed.
const CLEAN_EVERY: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

/// The destination of the access log, and the reason if it is not the wished one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Destination {
    /// The destination in force.
    pub(crate) log: AccessLog,
    /// The reason why a wished file is not written.
    pub(crate) refused: Option<String>,
}

impl Destination {
    /// Returns the wished destination: `option` of the command line, or that of the file. `on` stands for a file in
    /// `folder`. Opens nothing.
    pub(crate) fn wished(log: &Log, option: Option<&AccessLog>, folder: &Path) -> Self {
        let wish = option.cloned().unwrap_or_else(|| match &log.access {
            LogWish::Off => AccessLog::Off,
            LogWish::On => AccessLog::File(folder.join(NAME)),
            LogWish::Stderr => AccessLog::Stderr,
            LogWish::File(path) => AccessLog::File(path.clone()),
        });
        Self { log: wish, refused: None }
    }

    /// Returns the wished destination if it can be written. The folder of `on` is systemd's, or `state`.
    pub(super) fn usable(log: &Log, option: Option<&AccessLog>, state: &Path) -> Self {
        let given = std::env::var_os(GIVEN_FOLDER).unwrap_or_default();
        let folder = std::env::split_paths(&given).find(|folder| folder.is_absolute());
        let wished = Self::wished(log, option, folder.as_deref().unwrap_or(state));
        let AccessLog::File(path) = &wished.log else { return wished };
        match open(path, option.is_none()) {
            Ok(_) => wished,
            Err(error) => Self { log: AccessLog::Off, refused: Some(format!("{}: {error}", path.display())) },
        }
    }

    /// Tells the operator once if the wished file is not written.
    pub(super) fn report(&self, before: Option<&Self>) {
        if let Some(why) = self.refused.as_ref().filter(|_| before != Some(self)) {
            say(Level::Warning, &format!("the access log is not written: {why}; clients are served without it"));
        }
    }
}

/// Opens the file as Envoy will. A file that is `ours` loses the rights of other users.
fn open(path: &Path, ours: bool) -> io::Result<File> {
    // A pipe without a reader would make Envoy wait for ever.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().append(true).create(true).mode(MODE).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    let rights = metadata.permissions().mode();
    if ours && metadata.is_file() && rights & 0o7777 & !MODE != 0 {
        file.set_permissions(Permissions::from_mode(rights & MODE))?;
    }
    Ok(file)
}

/// Rotates the file in force.
#[derive(Debug)]
pub(super) struct Rotation {
    /// The file, and the day of its lines, in days since 1970.
    file: Option<(PathBuf, u64)>,
    looked: Option<Instant>,
    cleaned: Option<Instant>,
    /// The time before which no rotation is tried again.
    not_before: Option<Instant>,
    /// The reason why the last rotation failed.
    failure: Option<String>,
}

impl Rotation {
    pub(super) fn new() -> Self {
        Self { file: None, looked: None, cleaned: None, not_before: None, failure: None }
    }

    /// Returns the reason why the file is not rotated.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Follows a change of the file. None: the log is off, or its file is the operator's to rotate.
    pub(super) fn follow(&mut self, path: Option<&Path>) {
        if self.file.as_ref().map(|(path, _)| path.as_path()) != path {
            *self = Self::new();
            self.file = path.map(|path| (path.to_owned(), day_of(path)));
        }
    }

    /// Rotates the file and deletes old ones, if that is due. `reopen` makes Envoy open the file again. It returns false
    /// if that is not possible now.
    pub(super) fn tend(&mut self, log: &Log, is_ready: impl FnOnce() -> bool, reopen: impl FnOnce()) {
        let now = Instant::now();
        if self.looked.is_some_and(|looked| now.duration_since(looked) < LOOK_EVERY) {
            return;
        }
        self.looked = Some(now);
        let Some((path, day)) = &self.file else { return };
        if self.cleaned.is_none_or(|cleaned| now.duration_since(cleaned) >= CLEAN_EVERY) {
            self.cleaned = Some(now);
            delete_old(path, log.keep, SystemTime::now());
        }
        let waits = self.not_before.is_some_and(|not_before| now < not_before);
        if waits || !is_due(path, *day, log.size.0, SystemTime::now()) || !is_ready() {
            return;
        }
        match rotate(path, SystemTime::now()) {
            Ok(()) => {
                reopen();
                self.failure = None;
                self.file = Some((path.clone(), day_at(SystemTime::now())));
            }
            Err(error) => {
                self.not_before = Some(now + CLEAN_EVERY);
                let failure = format!("{}: {error}", path.display());
                if self.failure.as_ref() != Some(&failure) {
                    say(Level::Warning, &format!("the access log is not rotated: {failure}"));
                }
                self.failure = Some(failure);
            }
        }
    }
}

/// Returns true if the file has lines and a rotation is due, or if somebody took the file away. A device is never
/// rotated.
fn is_due(path: &Path, day: u64, size: u64, now: SystemTime) -> bool {
    match fs::metadata(path) {
        Ok(file) => file.is_file() && file.len() > 0 && (file.len() >= size || day_at(now) != day),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn rotate(path: &Path, now: SystemTime) -> io::Result<()> {
    match fs::rename(path, rotated_path(path, now)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // With a file in place, no reader meets its absence. Envoy makes one if this fails.
    open(path, true).map(drop)
}

fn delete_old(path: &Path, keep: Duration, now: SystemTime) {
    for old in rotated_files(path) {
        let age = fs::metadata(&old).and_then(|file| file.modified()).ok().and_then(|at| now.duration_since(at).ok());
        if age.is_some_and(|age| age > keep)
            && let Err(error) = fs::remove_file(&old)
        {
            say(Level::Warning, &format!("cannot delete {}, which is older than `log.keep`: {error}", old.display()));
        }
    }
}

/// Returns the day of the last line of a file, and today for a file without lines.
fn day_of(path: &Path) -> u64 {
    let written = fs::metadata(path).ok().filter(|file| file.len() > 0).and_then(|file| file.modified().ok());
    day_at(written.unwrap_or_else(SystemTime::now))
}

fn day_at(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() / DAY.as_secs())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use longhaul_config::{Bytes, LoggedClients};

    use super::*;

    fn log(access: LogWish, size: u64) -> Log {
        Log { access, keep: 2 * DAY, size: Bytes(size), clients: LoggedClients::Cut, who: false }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn set_age(path: &Path, age: Duration) {
        File::options().append(true).open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn the_option_wins_and_on_is_a_file_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let on = log(LogWish::On, 1);
        let place = folder.path().join("access.log");
        assert_eq!(Destination::wished(&on, None, folder.path()).log, AccessLog::File(place.clone()));
        assert_eq!(Destination::wished(&on, Some(&AccessLog::Stderr), folder.path()).log, AccessLog::Stderr);
        assert_eq!(Destination::usable(&on, None, folder.path()).log, AccessLog::File(place.clone()));
        assert_eq!(mode(&place) & 0o027, 0);
    }

    #[test]
    fn a_file_that_cannot_be_written_costs_the_log_and_names_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("absent/access.log");
        let destination = Destination::usable(&log(LogWish::File(absent.clone()), 1), None, folder.path());
        assert_eq!(destination.log, AccessLog::Off);
        assert_eq!(
            destination.refused.unwrap(),
            format!("{}: No such file or directory (os error 2)", absent.display())
        );
    }

    #[test]
    fn a_file_in_ours_loses_the_rights_of_others_and_the_operators_own_keeps_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        open(&path, false).unwrap();
        assert_eq!(mode(&path), 0o644);
        open(&path, true).unwrap();
        assert_eq!(mode(&path), 0o640);
    }

    #[test]
    fn a_file_is_rotated_by_size_and_by_day_and_old_ones_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let log = log(LogWish::On, 8);
        let reopened = Cell::new(0);
        let tend = |rotation: &mut Rotation, ready: bool| {
            rotation.looked = None;
            rotation.cleaned = None;
            rotation.tend(&log, || ready, || reopened.set(reopened.get() + 1));
        };
        fs::write(&path, "1 line\n").unwrap();
        let mut rotation = Rotation::new();
        rotation.follow(Some(&path));
        tend(&mut rotation, true);
        assert!(rotated_files(&path).is_empty(), "it is small and of today");
        fs::write(&path, "2 lines\n2\n").unwrap();
        tend(&mut rotation, false);
        assert!(rotated_files(&path).is_empty(), "Envoy is starting, and the signal would end it");
        tend(&mut rotation, true);
        let [old] = rotated_files(&path).try_into().unwrap();
        assert_eq!(fs::read_to_string(&old).unwrap(), "2 lines\n2\n");
        assert_eq!((fs::metadata(&path).unwrap().len(), mode(&path), reopened.get()), (0, 0o640, 1));
        fs::write(&path, "3\n").unwrap();
        set_age(&path, DAY);
        rotation.follow(None);
        rotation.follow(Some(&path));
        tend(&mut rotation, true);
        assert_eq!((rotated_files(&path).len(), reopened.get()), (2, 2), "its lines are of yesterday");
        set_age(&old, 2 * DAY + CLEAN_EVERY);
        tend(&mut rotation, true);
        assert!(!old.exists() && rotated_files(&path).len() == 1, "it is older than `log.keep`");
        assert_eq!(rotation.failure(), None);
    }

    #[test]
    fn a_device_is_written_and_never_rotated() {
        let full = Path::new("/dev/full");
        assert_eq!(Destination::usable(&log(LogWish::File(full.into()), 1), None, full).refused, None);
        assert!(!is_due(full, 0, 0, SystemTime::now()));
    }
}
