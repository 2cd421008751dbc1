//! The state folder of a run: rendered files, files that outlive restarts, and a lock so that two runs do not share it.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;

use longhaul_observe::report::default_folder;
use rustix::fs::{Access, Mode, access};
use rustix::process::umask;

use super::private::PrivateFolder;

/// A locked state folder; unlocked when dropped or when the process ends in any way.
#[derive(Debug)]
pub(super) struct StateFolder {
    /// The rendered tree.
    pub(super) rendered: PathBuf,
    /// The folder that outlives restarts: addresses of known origins.
    pub(super) kept: PathBuf,
    /// The folder of sockets that nobody else may reach.
    pub(super) private: PrivateFolder,
    /// The folder itself.
    pub(super) path: PathBuf,
    /// The reason why this is a spare folder.
    pub(super) fault: Option<String>,
    _lock: File,
}

/// The folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    /// It cannot be made or opened.
    #[error("cannot use the state folder {}: {error}; choose another with --state DIR", path.display())]
    Unusable {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// It belongs to another user, who could put files into it.
    #[error("the state folder {} belongs to another user (uid {owner}); choose another with --state DIR", path.display())]
    Foreign {
        /// The path.
        path: PathBuf,
        /// The user who owns it.
        owner: u32,
    },
    /// Another run has it.
    #[error("another longhaul{holder} runs with the state folder {}; stop it, or choose another with --state DIR", path.display())]
    Locked {
        /// The path.
        path: PathBuf,
        /// ` (process N)`, if the other run wrote its number.
        holder: String,
    },
}

impl StateFolder {
    /// Makes and locks `given`, or the default folder for `config`. If its disk is full, makes one below `spare`, where
    /// the run works as well, without what earlier runs knew.
    pub(super) fn open(given: Option<&Path>, config: &Path, spare: Option<&Path>) -> Result<Self, StateError> {
        let path = given.map_or_else(
            || default_folder(config),
            |path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
        );
        match (Self::at(&path, given), spare) {
            (Err(StateError::Unusable { error, .. }), Some(spare)) if is_full(&error) => {
                let spare = spare.join("state");
                let (path, used) = (path.display(), spare.display());
                let fault = format!("the state folder {path} cannot be written ({error}), and this run uses {used}");
                Ok(Self { fault: Some(fault), ..Self::at(&spare, Some(&spare))? })
            }
            (opened, _) => opened,
        }
    }

    fn at(path: &Path, given: Option<&Path>) -> Result<Self, StateError> {
        let path = path.to_owned();
        let unusable = |error| StateError::Unusable { path: path.clone(), error };
        fs::DirBuilder::new().recursive(true).mode(0o755).create(&path).map_err(unusable)?;
        refuse_foreign(&path)?;
        // A default folder lies in a folder of this program, possibly in /tmp. An owner of that folder could replace
        // this one.
        if let (None, Some(parent)) = (given, path.parent()) {
            refuse_foreign(parent)?;
        }
        let lock = lock(&path)?;
        let (rendered, kept) = (path.join("rendered"), path.join("kept"));
        // Other users may read the report alone. The addresses in `kept` say which origins clients use.
        for folder in [&rendered, &kept] {
            fs::create_dir_all(folder)
                .and_then(|()| fs::set_permissions(folder, Permissions::from_mode(0o700)))
                .map_err(unusable)?;
        }
        has_room(&path).map_err(unusable)?;
        let private = PrivateFolder::open(&path).map_err(unusable)?;
        Ok(Self { rendered, kept, private, path, fault: None, _lock: lock })
    }
}

/// The bytes that the files of a run may take.
const ROOM: usize = 1 << 20;

/// Tries whether the files of a run fit into the folder.
fn has_room(folder: &Path) -> io::Result<()> {
    tempfile::Builder::new().prefix(".longhaul-").tempfile_in(folder)?.write_all(&vec![0; ROOM])
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem)
}

/// Returns the folder that systemd made for this run (`RuntimeDirectory=`), which is no disk.
pub(super) fn spare_folder() -> Option<PathBuf> {
    let folders = std::env::var_os("RUNTIME_DIRECTORY")?;
    std::env::split_paths(&folders).next().filter(|folder| folder.is_absolute())
}

/// Returns the reason why a run could not have `given`, or the default folder for `config`. Makes nothing.
pub(super) fn refusal(given: Option<&Path>, config: &Path) -> Option<StateError> {
    let path = given.map_or_else(|| default_folder(config), Path::to_owned);
    let unusable = |error| Some(StateError::Unusable { path: path.clone(), error });
    let existing = path.ancestors().find(|folder| folder.symlink_metadata().is_ok())?;
    let parent = path.parent().filter(|parent| given.is_none() && parent.exists());
    if existing != path {
        return match access(existing, Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => parent.and_then(|parent| refuse_foreign(parent).err()),
            Err(error) => unusable(error.into()),
        };
    }
    if let Err(foreign) = [Some(path.as_path()), parent].into_iter().flatten().try_for_each(refuse_foreign) {
        return Some(foreign);
    }
    let mut file = File::open(path.join("lock")).ok()?;
    matches!(file.try_lock(), Err(TryLockError::WouldBlock)).then(|| locked(&path, &mut file))
}

fn refuse_foreign(path: &Path) -> Result<(), StateError> {
    let metadata = fs::symlink_metadata(path).map_err(|error| StateError::Unusable { path: path.to_owned(), error })?;
    let me = rustix::process::geteuid();
    if metadata.uid() == me.as_raw() || me.is_root() {
        Ok(())
    } else {
        Err(StateError::Foreign { path: path.to_owned(), owner: metadata.uid() })
    }
}

fn lock(folder: &Path) -> Result<File, StateError> {
    let unusable = |error| StateError::Unusable { path: folder.to_owned(), error };
    // Whoever can open the file can lock it, and then no run starts.
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(LOCK_MODE)
        .open(folder.join("lock"))
        .and_then(|file| file.set_permissions(Permissions::from_mode(LOCK_MODE)).map(|()| file))
        .map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(locked(folder, &mut file));
        }
        Err(TryLockError::Error(error)) => return Err(unusable(error)),
    }
    // Only for the message above. The kernel holds the lock itself.
    file.set_len(0).and_then(|()| writeln!(file, "{}", process::id())).map_err(unusable)?;
    Ok(file)
}

fn locked(folder: &Path, lock: &mut File) -> StateError {
    let mut pid = String::new();
    let _ = lock.read_to_string(&mut pid);
    let holder = pid.trim().parse::<u32>().map(|pid| format!(" (process {pid})")).unwrap_or_default();
    StateError::Locked { path: folder.to_owned(), holder }
}

/// Reads and writes of the owner alone.
const LOCK_MODE: u32 = 0o600;

/// Takes all rights of other users from the files that this process and its children make: the access log and the cache
/// hold what clients read. The service has the same `UMask=`.
pub(super) fn hide_new_files() {
    const OTHERS: u32 = 0o027;
    let before = umask(Mode::from_raw_mode(OTHERS));
    umask(before | Mode::from_raw_mode(OTHERS));
}
