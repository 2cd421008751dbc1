//! The private folder of a run. It holds the sockets that obey each client: Envoy's admin interface, the sockets
//! of its hot restart, and CoreDNS's metrics.
//!
//! A Unix socket in a folder of mode 0700 is the only kind that other users of this machine cannot reach. An abstract one
//! has no owner, and each user reaches loopback.
//!
//! Envoy and CoreDNS run in this folder and name its sockets without it. So the path of the state folder may be longer
//! than the address of a socket, and may hold characters that mean something to Envoy (`{}` in `--socket-path`).

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Envoy's admin interface. During a takeover, the new process takes the name over: its parent closes its own socket
/// first.
pub(super) const ADMIN: &str = "admin.sock";
/// CoreDNS's metrics.
pub(super) const DNS_METRICS: &str = "coredns.sock";
/// The file with the problems that CoreDNS tells the other end of a pair.
pub(super) const TOLD: &str = "told.json";
/// The socket on which CoreDNS tells the true addresses of names. It is in the state folder, so that the group can enter:
/// `longhaul host --watch` is another user, who has the rights to change packet rules and no others.
pub(super) const TRUE_ADDRESSES: &str = "../true-addresses.sock";
/// The beginning of the names of Envoy's hot-restart sockets.
pub(super) const HOT_RESTART: &str = "hot";
/// Reads and writes of the owner alone.
pub(super) const SOCKET_MODE: &str = "600";

const NAME: &str = "private";
const FOLDER_MODE: u32 = 0o700;

/// The folder, which only this user can enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PrivateFolder {
    path: PathBuf,
}

impl PrivateFolder {
    /// Makes the folder in the state folder `state`.
    ///
    /// # Errors
    /// It cannot be made, or something else has its name: an owner of the state folder could lead root elsewhere by a
    /// link.
    pub(super) fn open(state: &Path) -> io::Result<Self> {
        let path = state.join(NAME);
        let make = || match DirBuilder::new().mode(FOLDER_MODE).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        };
        let me = rustix::process::geteuid();
        make()?;
        let found = fs::symlink_metadata(&path)?;
        if me.is_root() && found.is_dir() && found.uid() != me.as_raw() {
            // An earlier run of another user. Nothing in the folder outlives a run.
            fs::remove_dir_all(&path)?;
            make()?;
        }
        let found = fs::symlink_metadata(&path)?;
        if !found.is_dir() || found.uid() != me.as_raw() {
            return Err(io::Error::other(format!("{} is no folder of this user; remove it", path.display())));
        }
        fs::set_permissions(&path, Permissions::from_mode(FOLDER_MODE))?;
        Ok(Self { path })
    }

    /// Returns the folder, in which Envoy and CoreDNS run.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the socket of Envoy's admin interface.
    pub(crate) fn admin(&self) -> PathBuf {
        self.path.join(ADMIN)
    }

    /// Returns the file with the problems for the other end.
    pub(super) fn told(&self) -> PathBuf {
        self.path.join(TOLD)
    }

    /// Returns the socket of CoreDNS's metrics.
    pub(crate) fn dns_metrics(&self) -> PathBuf {
        self.path.join(DNS_METRICS)
    }

    /// Removes the sockets of a line of processes that has ended. Envoy leaves them behind.
    pub(super) fn forget_envoy(&self) {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            if name == ADMIN || name.to_string_lossy().starts_with(HOT_RESTART) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_closed_to_others_also_where_it_was_open() {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join(NAME);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        let folder = PrivateFolder::open(state.path()).unwrap();
        assert_eq!(fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, FOLDER_MODE);
        fs::write(folder.admin(), "").unwrap();
        fs::write(folder.dns_metrics(), "").unwrap();
        fs::write(folder.path().join("hot_parent_70"), "").unwrap();
        folder.forget_envoy();
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [DNS_METRICS], "CoreDNS still has its own");
    }

    #[test]
    fn a_link_in_the_place_of_the_folder_is_refused() {
        let state = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), state.path().join(NAME)).unwrap();
        assert!(PrivateFolder::open(state.path()).unwrap_err().to_string().contains("remove it"));
    }
}
