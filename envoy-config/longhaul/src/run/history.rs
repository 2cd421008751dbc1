//! Writes down each configuration that comes into force, and how the box is with it, for `longhaul history`.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use longhaul_observe::history::{Configuration, History};
use longhaul_observe::report::{ProblemKind, ProblemRecord};

use super::log::Level;
use super::say;
use crate::replaced_file;

/// The time after which a record is written again although no problem began or ended, in seconds.
const WRITE_EVERY_S: u64 = 600;

/// The record of this run's configurations.
#[derive(Debug)]
pub(super) struct Recorder {
    folder: PathBuf,
    /// The configuration in force. None before the first one, and if it could not be read again.
    present: Option<Configuration>,
}

/// A configuration that came into force.
#[derive(Debug, Clone, Copy)]
pub(super) struct InForce<'r> {
    /// The file it was read from.
    pub(super) file: &'r Path,
    /// SHA-256 of the text that is in force, in hex.
    pub(super) sha256: &'r str,
    /// True if a run started with it.
    pub(super) is_start: bool,
}

impl Recorder {
    /// Makes the folder below `kept`, which is for this user alone.
    pub(super) fn open(kept: &Path) -> Self {
        let folder = kept.join(History::FOLDER);
        // A full disk costs the history, and no run.
        let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        Self { folder, present: None }
    }

    /// Records that a configuration is in force at `now`, in seconds since 1970, with `version`. The same one again, after a
    /// restart, is no new one.
    pub(super) fn begin(&mut self, now: u64, version: &str, next: InForce<'_>) {
        self.end(now);
        let history = History::read(&self.folder).unwrap_or_default();
        let read = || read(next.file, next.sha256);
        self.present = history.next(now, version, (next.file, next.sha256), next.is_start, read);
        if let Err(error) = self.write() {
            let folder = self.folder.display();
            say(
                Level::Warning,
                &format!("`longhaul history` lacks this configuration: cannot write to {folder}: {error}"),
            );
        }
        for number in History::read(&self.folder).unwrap_or_default().outdated() {
            let _ = fs::remove_file(History::path(&self.folder, number));
        }
    }

    /// Records the problems that stand at `now`. Writes if one began or ended, and from time to time.
    pub(super) fn tend(&mut self, now: u64, problems: &[ProblemRecord]) {
        let Some(present) = &mut self.present else { return };
        let mut standing: Vec<ProblemKind> =
            problems.iter().filter(|problem| problem.ended.is_none()).map(|problem| problem.kind).collect();
        standing.sort_unstable();
        standing.dedup();
        if standing == present.standing && now.abs_diff(present.seen) < WRITE_EVERY_S {
            return;
        }
        present.tally(now, &standing);
        // The next one is written, too.
        let _ = self.write();
    }

    /// Records that the configuration is not in force any more, or that the run ends.
    pub(super) fn end(&mut self, now: u64) {
        let Some(mut present) = self.present.take() else { return };
        let standing = present.standing.clone();
        present.tally(now, &standing);
        self.present = Some(present);
        let _ = self.write();
        self.present = None;
    }

    fn write(&self) -> io::Result<()> {
        let Some(present) = &self.present else { return Ok(()) };
        let record = serde_json::to_vec(present)?;
        if u64::try_from(record.len()).unwrap_or(u64::MAX) > History::MAX_BYTES {
            return Err(io::Error::other(format!("the configuration has more than {} bytes", History::MAX_BYTES)));
        }
        replaced_file::replace(&History::path(&self.folder, present.number), &record, 0o600)
    }
}

/// Returns the text of a file if it still has the hash. An edit that came meanwhile is the next configuration.
fn read(file: &Path, sha256: &str) -> Option<String> {
    use sha2::{Digest as _, Sha256};
    let text = fs::read_to_string(file).ok()?;
    (hex::encode(Sha256::digest(&text)) == sha256).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use sha2::{Digest as _, Sha256};

    use super::*;

    struct Box {
        folder: tempfile::TempDir,
        recorder: Recorder,
    }

    impl Box {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let recorder = Recorder::open(folder.path());
            Self { folder, recorder }
        }

        fn begin(&mut self, now: u64, text: &str, version: &str, is_start: bool) {
            let file = self.folder.path().join("longhaul.yaml");
            fs::write(&file, text).unwrap();
            let sha256 = hex::encode(Sha256::digest(text));
            self.recorder.begin(now, version, InForce { file: &file, sha256: &sha256, is_start });
        }

        fn history(&self) -> Vec<Configuration> {
            History::read(&self.folder.path().join(History::FOLDER)).unwrap().configurations
        }
    }

    fn silent(ended: Option<u64>) -> ProblemRecord {
        ProblemRecord { kind: ProblemKind::LinkSilent, of: String::new(), text: "x".to_owned(), began: 0, ended }
    }

    #[test]
    fn each_configuration_is_one_record_and_a_restart_with_the_same_is_none() {
        let mut one = Box::new();
        one.begin(10, "a", "0.1.0", true);
        one.recorder.end(50);
        one.begin(1_000, "a", "0.1.0", true);
        one.recorder.tend(1_030, &[silent(None), silent(Some(9))]);
        one.begin(1_060, "b", "0.1.0", false);
        one.recorder.end(1_070);
        one.begin(1_080, "b", "0.2.0", true);
        let history = one.history();
        let texts: Vec<_> = history.iter().map(|one| (one.number, one.text.as_str())).collect();
        assert_eq!(texts, [(3, "b"), (2, "b"), (1, "a")]);
        let first = &history[2];
        assert_eq!((first.served_s, first.problem_s, first.was_healthy()), (40 + 60, 30, Some(false)));
        assert_eq!(history[1].was_healthy(), Some(true));
    }

    #[test]
    fn records_are_for_their_owner_alone_and_bounded() {
        let mut one = Box::new();
        for number in 0..60 {
            one.begin(number, &format!("text {number}"), "0.1.0", false);
        }
        let history = one.history();
        assert_eq!((history.len(), history[0].number), (50, 60));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = one.folder.path().join(History::FOLDER);
        assert_eq!((mode(&folder), mode(&History::path(&folder, 60))), (0o700, 0o600));
    }

    #[test]
    fn a_text_that_is_not_the_one_in_force_is_not_recorded() {
        let mut one = Box::new();
        let file = one.folder.path().join("longhaul.yaml");
        fs::write(&file, "edited meanwhile").unwrap();
        one.recorder.begin(1, "0.1.0", InForce { file: &file, sha256: "another", is_start: true });
        one.recorder.tend(2, &[silent(None)]);
        assert_eq!(one.history(), []);
    }
}
