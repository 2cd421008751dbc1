//! The state folders of runs: where a run keeps its report.

use std::path::{Path, PathBuf};
use std::{env, fs};

use sha2::{Digest, Sha256};

/// Returns the default folder. Each configuration file has its own, so that several runs fit on one machine.
pub fn default_folder(config: &Path) -> PathBuf {
    let path = fs::canonicalize(config).unwrap_or_else(|_| config.to_owned());
    let hash = hex::encode(Sha256::digest(path.as_os_str().as_encoded_bytes()));
    let stem = config.file_stem().map_or_else(|| "longhaul".into(), |stem| stem.to_string_lossy().into_owned());
    base().join(format!("{stem}-{}", hash.get(..8).unwrap_or_default()))
}

/// The configuration file of `longhaul.service`.
pub(crate) const SERVICE_FILE: &str = "/etc/longhaul/longhaul.yaml";
/// The state folder of `longhaul.service`.
pub(crate) const SERVICE_FOLDER: &str = "/var/lib/longhaul";

/// The folder that `longhaul.service` uses while the disk of the other one is full: below its `RuntimeDirectory=`.
pub(super) const SERVICE_SPARE_FOLDER: &str = "/run/longhaul-run/state";

/// Returns the state folders that a run of this user or of the service may have had: with `config`, or with any file.
pub(crate) fn own_state_folders(config: Option<&Path>) -> Vec<PathBuf> {
    let own = config.map_or_else(|| folders_in(&base()), |config| vec![default_folder(config)]);
    own.into_iter().chain([PathBuf::from(SERVICE_FOLDER)]).collect()
}

/// The name of the socket in a state folder on which CoreDNS tells the true addresses of names (`dns.instant`).
const TRUE_ADDRESSES: &str = "true-addresses.sock";

/// Returns the places of that socket for `longhaul.service`.
#[must_use]
pub fn true_addresses_of_service() -> Vec<PathBuf> {
    [SERVICE_FOLDER, SERVICE_SPARE_FOLDER].map(|folder| Path::new(folder).join(TRUE_ADDRESSES)).to_vec()
}

/// Returns the default folders of present and past runs: those of this user, and for root those of all users.
pub(super) fn folders_of_runs() -> Vec<PathBuf> {
    bases().iter().flat_map(|base| folders_in(base)).collect()
}

fn bases() -> Vec<PathBuf> {
    let mut bases = vec![base()];
    if rustix::process::geteuid().is_root() {
        bases.extend(folders_in(Path::new("/run/user")).into_iter().map(|user| user.join("longhaul")));
        let is_base = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.and_then(|name| name.strip_prefix("longhaul-")).is_some_and(|uid| uid.parse::<u32>().is_ok())
        };
        bases.extend(folders_in(&env::temp_dir()).into_iter().filter(is_base));
    }
    bases
}

/// Returns the folders in `folder`, without symbolic links. Empty if it cannot be read.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).map(|entries| entries.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let folders = entries.into_iter().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

fn base() -> PathBuf {
    let me = rustix::process::geteuid();
    if me.is_root() {
        PathBuf::from("/run/longhaul")
    } else {
        match env::var_os("XDG_RUNTIME_DIR").filter(|dir| Path::new(dir).is_dir()) {
            Some(dir) => PathBuf::from(dir).join("longhaul"),
            None => env::temp_dir().join(format!("longhaul-{}", me.as_raw())),
        }
    }
}
