//! The folder of a pair: its authority, and one folder for each end with all files of that end.
//!
//! ```text
//! pair/pair-ca.key            the authority's key, which goes to neither end
//! pair/pair-ca.pem
//! pair/ground/                longhaul.yaml, ground.pem, ground.key, pair-ca.pem
//! pair/ship/                  longhaul.yaml, ship.pem, ship.key, pair-ca.pem
//! ```

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use longhaul_config::{HostName, HostPort};

use super::authority::{Authority, AuthorityError, Issued};
use super::files::{self, AUTHORITY, GROUND, Site};
use crate::replaced_file;

/// The authority's key.
pub(crate) const AUTHORITY_KEY: &str = "pair-ca.key";
/// An end's configuration file.
const CONFIG: &str = "longhaul.yaml";
/// The address of the ground, as the first `pair init` received it.
const GROUND_ADDRESS: &str = "ground.address";

/// The reason why a pair was not set up or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PairError {
    /// A remote with the name of the ground's folder.
    #[error("`{GROUND}` is the folder of the ground's files; choose another name for the remote")]
    Reserved,
    /// The remote exists already.
    #[error("{} exists; to replace its certificate and key type: longhaul pair renew {}", .folder.display(), .name)]
    Exists {
        /// The remote's name.
        name: String,
        /// Its folder.
        folder: PathBuf,
    },
    /// There is no such end to renew.
    #[error("{} does not exist; `longhaul pair init {} GROUND:PORT` makes it", .folder.display(), .name)]
    Unknown {
        /// The name that was given.
        name: String,
        /// Its folder.
        folder: PathBuf,
    },
    /// The ground of the folder has another address.
    #[error("the ground in {} stands at {}; name that address, or another folder with --dir", .folder.display(), .at)]
    OtherGround {
        /// The folder.
        folder: PathBuf,
        /// The address in the folder.
        at: String,
    },
    /// A file could not be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// A certificate could not be made.
    #[error("cannot sign with {}: {error}", path.display())]
    Authority {
        /// The authority's key.
        path: PathBuf,
        /// The reason.
        error: AuthorityError,
    },
}

/// The ground's list of remotes after `init`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peers {
    /// The ground's file is new, and names the remote.
    New,
    /// The remote was added to `split.peer` of the ground's file.
    Extended,
    /// The file has no list `peer: [...]` that could be extended. The operator must add the name.
    ByHand,
}

/// The result of `init`.
#[derive(Debug)]
pub(crate) struct Added {
    /// True if the authority is new.
    pub new_authority: bool,
    /// The ground's list of remotes.
    pub peers: Peers,
}

/// A pair's folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Returns the folder at `path`, which need not exist.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns the folder of an end: [`GROUND`] or a remote's name.
    pub(crate) fn of(&self, end: &str) -> PathBuf {
        self.0.join(end)
    }

    /// Returns an end's configuration file.
    pub(crate) fn config_of(&self, end: &str) -> PathBuf {
        self.of(end).join(CONFIG)
    }

    /// Returns the names of an end's files, in its folder.
    pub(crate) fn files_of(end: &str) -> [String; 4] {
        [CONFIG.to_owned(), format!("{end}.pem"), format!("{end}.key"), AUTHORITY.to_owned()]
    }

    /// Adds the remote `name` to the pair whose ground stands at `ground`. Makes the authority and the ground if they do not
    /// exist.
    ///
    /// # Errors
    /// Nothing is written if the remote exists or the ground stands elsewhere. A failed write may leave files behind.
    pub(crate) fn init(
        &self,
        name: &HostName,
        ground: &HostPort,
        site: &Site,
        now: SystemTime,
    ) -> Result<Added, PairError> {
        if name.as_str() == GROUND {
            return Err(PairError::Reserved);
        }
        let folder = self.of(name.as_str());
        if folder.exists() {
            return Err(PairError::Exists { name: name.to_string(), folder });
        }
        let at = self.ground()?;
        if let Some(at) = at.as_ref().filter(|at| *at != ground) {
            return Err(PairError::OtherGround { folder: self.0.clone(), at: at.to_string() });
        }
        let new_authority = !self.0.join(AUTHORITY_KEY).exists();
        let authority = if new_authority { self.make_authority(now)? } else { self.read_authority()? };
        let peers = if at.is_none() {
            self.write_end(GROUND, &ground.host.bare(), &files::ground(ground, name, site), &authority, now)?;
            write_new(&self.0.join(GROUND_ADDRESS), &format!("{ground}\n"), Readers::All)?;
            Peers::New
        } else {
            self.add_peer(name)?
        };
        self.write_end(name.as_str(), name.as_str(), &files::remote(name, ground, site), &authority, now)?;
        Ok(Added { new_authority, peers })
    }

    /// Replaces the certificate and the key of an end.
    ///
    /// # Errors
    /// Nothing is written if the end or the authority's key is missing.
    pub(crate) fn renew(&self, end: &str, now: SystemTime) -> Result<(), PairError> {
        let folder = self.of(end);
        let name = match self.ground()? {
            Some(ground) if end == GROUND => ground.host.bare(),
            _ => end.to_owned(),
        };
        if !folder.join(format!("{end}.pem")).exists() {
            return Err(PairError::Unknown { name: end.to_owned(), folder });
        }
        let issued = self.issue(&self.read_authority()?, &name, now)?;
        replace(&folder.join(format!("{end}.key")), &issued.key, Readers::Group)?;
        replace(&folder.join(format!("{end}.pem")), &issued.certificate, Readers::All)
    }

    /// Returns the address of the ground, or none if there is no ground yet.
    ///
    /// # Errors
    /// The file that holds the address cannot be read.
    pub(crate) fn ground(&self) -> Result<Option<HostPort>, PairError> {
        let path = self.0.join(GROUND_ADDRESS);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(HostPort::parse(text.trim())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(PairError::File { path, error }),
        }
    }

    fn make_authority(&self, now: SystemTime) -> Result<Authority, PairError> {
        make_folder(&self.0)?;
        let (authority, issued) = Authority::new(now).map_err(|error| self.unsigned(error))?;
        write_new(&self.0.join(AUTHORITY_KEY), &issued.key, Readers::Owner)?;
        write_new(&self.0.join(AUTHORITY), &issued.certificate, Readers::All)?;
        Ok(authority)
    }

    fn read_authority(&self) -> Result<Authority, PairError> {
        let certificate = read(&self.0.join(AUTHORITY))?;
        let key = read(&self.0.join(AUTHORITY_KEY))?;
        Authority::read(&certificate, &key).map_err(|error| self.unsigned(error))
    }

    fn issue(&self, authority: &Authority, name: &str, now: SystemTime) -> Result<Issued, PairError> {
        authority.issue(name, now).map_err(|error| self.unsigned(error))
    }

    fn unsigned(&self, error: AuthorityError) -> PairError {
        PairError::Authority { path: self.0.join(AUTHORITY_KEY), error }
    }

    /// Writes all files of `end`, with a certificate for `host`.
    fn write_end(
        &self,
        end: &str,
        host: &str,
        config: &str,
        authority: &Authority,
        now: SystemTime,
    ) -> Result<(), PairError> {
        let issued = self.issue(authority, host, now)?;
        let trusted = read(&self.0.join(AUTHORITY))?;
        let folder = self.of(end);
        make_folder(&folder)?;
        let [file, certificate, key, authority] = Self::files_of(end).map(|name| folder.join(name));
        write_new(&file, config, Readers::All)?;
        write_new(&certificate, &issued.certificate, Readers::All)?;
        write_new(&key, &issued.key, Readers::Group)?;
        write_new(&authority, &trusted, Readers::All)
    }

    fn add_peer(&self, name: &HostName) -> Result<Peers, PairError> {
        let path = self.config_of(GROUND);
        let text = read(&path)?;
        match with_peer(&text, name.as_str()) {
            None => Ok(Peers::ByHand),
            Some(extended) => replace(&path, &extended, Readers::All).map(|()| Peers::Extended),
        }
    }
}

/// Adds `name` to the list `peer: [` that [`files::ground`] writes. Returns None if the text does not have exactly one
/// such list.
fn with_peer(text: &str, name: &str) -> Option<String> {
    const LIST: &str = "peer: [";
    let mut lists = text.match_indices(LIST);
    let (at, _) = lists.next()?;
    if lists.next().is_some() {
        return None;
    }
    let (before, list) = text.split_at_checked(at + LIST.len())?;
    let (names, after) = list.split_once(']')?;
    if names.contains(['\n', '#']) {
        return None;
    }
    Some(format!("{before}{}, {name}]{after}", names.trim_end()))
}

/// The users who may read a file, besides its owner.
#[derive(Debug, Clone, Copy)]
enum Readers {
    Owner,
    /// The service's group.
    Group,
    All,
}

impl Readers {
    fn mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Group => 0o640,
            Self::All => 0o644,
        }
    }
}

fn make_folder(path: &Path) -> Result<(), PairError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| PairError::File { path: path.to_owned(), error })
}

fn read(path: &Path) -> Result<String, PairError> {
    fs::read_to_string(path).map_err(|error| PairError::File { path: path.to_owned(), error })
}

/// Writes a new file. Fails if it exists.
fn write_new(path: &Path, text: &str, readers: Readers) -> Result<(), PairError> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(readers.mode()).open(path);
    opened
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| PairError::File { path: path.to_owned(), error })
}

/// Replaces a file that a running proxy may be reading.
fn replace(path: &Path, text: &str, readers: Readers) -> Result<(), PairError> {
    replaced_file::replace(path, text.as_bytes(), readers.mode())
        .map_err(|error| PairError::File { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_added_to_the_one_list_of_peers() {
        assert_eq!(with_peer("split: { peer: [a], x: 1 }\n", "b").unwrap(), "split: { peer: [a, b], x: 1 }\n");
        assert_eq!(with_peer("split: { peer: [a, b ] }", "c").unwrap(), "split: { peer: [a, b, c] }");
    }

    #[test]
    fn a_list_in_another_form_is_left_to_the_operator() {
        for text in ["split:\n  peer:\n    - a\n", "split: { peer: [a,\n b] }", "peer: [a]\n# peer: [b]\n", "peer: [a"]
        {
            assert_eq!(with_peer(text, "c"), None, "{text}");
        }
    }
}
