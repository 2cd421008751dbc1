//! Finds the history of a box, also of one that does not run.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::list::History;
use crate::report::{SERVICE_FILE, SERVICE_FOLDER, list, own_state_folders};

/// A history that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// It has one configuration at least.
    pub history: History,
    /// The file that the box reads. None if only a record of another user names it: root must not write there.
    pub file: Option<PathBuf>,
    /// The folder of the records.
    pub folder: PathBuf,
}

/// The reason why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum NoHistory {
    /// No run has written one.
    #[error(
        "no history of configurations was found. A run writes it into its state folder: add --state DIR if the run was started with it"
    )]
    None,
    /// There are several, and the operator named none.
    #[error("there are histories of {} configurations; name one with --config:\n{}", .0.len(), list(.0))]
    Several(Vec<PathBuf>),
    /// This user may not read it.
    #[error("cannot read {}: {error}. Type it as root, or as the user of the service", path.display())]
    Unreadable {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
}

impl Found {
    /// Returns the history of `config`, or that in the state folder `state`. Without both, returns the only one of this user and
    /// of the service.
    ///
    /// # Errors
    /// There is none, there are several, or this user may not read it.
    pub fn find(config: Option<&Path>, state: Option<&Path>) -> Result<Self, NoHistory> {
        let folders = state.map_or_else(|| own_state_folders(config), |state| vec![state.to_owned()]);
        let mut refused = None;
        let mut found: Vec<Self> = Vec::new();
        for state in folders {
            let folder = state.join("kept").join(History::FOLDER);
            match History::read(&folder) {
                Ok(history) => found.extend(of(history, folder, &state, config)),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    refused = Some(NoHistory::Unreadable { path: folder, error });
                }
                Err(_) => {}
            }
        }
        match (found.pop(), refused) {
            (Some(one), _) if found.is_empty() => Ok(one),
            (Some(one), _) => {
                found.push(one);
                Err(NoHistory::Several(found.iter().filter_map(Self::recorded).map(Path::to_owned).collect()))
            }
            (None, Some(refused)) => Err(refused),
            (None, None) => Err(NoHistory::None),
        }
    }

    fn recorded(&self) -> Option<&Path> {
        self.history.configurations.first().map(|one| one.file.as_path())
    }
}

/// Returns the history in `folder` if it has a configuration, and one of `config` where that is given.
fn of(history: History, folder: PathBuf, state: &Path, config: Option<&Path>) -> Option<Found> {
    let recorded = history.configurations.first()?.file.clone();
    let file = match config {
        Some(config) if is_same(config, &recorded) => Some(config.to_owned()),
        Some(_) => return None,
        None => is_trusted(&recorded, &folder, state).then_some(recorded),
    };
    Some(Found { history, file, folder })
}

/// Returns true if a command of this user may write to the file that the record names. The user of the service could name
/// any file of root's.
fn is_trusted(recorded: &Path, folder: &Path, state: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    let is_own = fs::metadata(folder).is_ok_and(|folder| folder.uid() == me);
    let is_service = state == Path::new(SERVICE_FOLDER) && recorded == Path::new(SERVICE_FILE);
    is_own || is_service
}

/// Returns true if both are one file. A file that is missing has its name alone.
fn is_same(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
    whole(one).ok() == whole(other).ok()
}

#[cfg(test)]
mod tests {
    use super::super::configuration::tests::configuration;
    use super::*;

    #[test]
    fn a_history_is_found_by_its_state_folder_and_not_under_the_name_of_another_file() {
        let state = tempfile::tempdir().unwrap();
        assert!(matches!(Found::find(None, Some(state.path())), Err(NoHistory::None)));
        let folder = state.path().join("kept").join(History::FOLDER);
        fs::create_dir_all(&folder).unwrap();
        let one = configuration(1, "a");
        fs::write(History::path(&folder, 1), serde_json::to_vec(&one).unwrap()).unwrap();
        let found = Found::find(None, Some(state.path())).unwrap();
        assert_eq!(
            (found.history.configurations.as_slice(), &found.file),
            ([one.clone()].as_slice(), &Some(one.file.clone()))
        );
        assert!(Found::find(Some(&one.file), Some(state.path())).is_ok());
        assert!(matches!(Found::find(Some(Path::new("/other.yaml")), Some(state.path())), Err(NoHistory::None)));
    }

    #[test]
    fn a_record_of_another_user_names_no_file_to_write_but_that_of_the_service() {
        let service = Path::new(SERVICE_FOLDER);
        // Nobody owns it.
        let folder = Path::new("/no/such/folder");
        assert!(is_trusted(Path::new(SERVICE_FILE), folder, service));
        assert!(!is_trusted(Path::new("/etc/passwd"), folder, service));
        assert!(!is_trusted(Path::new(SERVICE_FILE), folder, Path::new("/tmp/longhaul-1000/x")));
    }
}
