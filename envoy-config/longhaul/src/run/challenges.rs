//! Serves the responses to ACME challenges from `tls.acme.webroot`, on a loopback socket that only Envoy uses.
//!
//! Envoy's routes have checked name, path and method of a request before (`part/challenge_routes.yaml`). Other programs
//! on this host reach the socket too, so the token is checked again here.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_config::{ChallengeResponses, Settings};
use longhaul_render::NearSockets;
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::log::Level;
use super::say;
use crate::web::{HostPolicy, Resource, Server, Site};

/// The path of a challenge up to its token (RFC 8555 section 8.3).
const PREFIX: &str = "/.well-known/acme-challenge/";
/// The longest response, in bytes. A key authorization has a token of about 43 bytes and a thumbprint of 43 bytes.
const MOST_BYTES: u64 = 4096;
/// The media type of RFC 8555 section 8.3.
const MEDIA_TYPE: &str = "application/octet-stream";

/// The server. It serves nothing until `tls.acme.webroot` is set.
#[derive(Debug, Default)]
pub(super) struct ChallengeServer {
    serving: Option<(Wanted, Server)>,
    /// True if the last attempt to start failed. The reason has been reported.
    failed: bool,
}

/// The folder that the settings name, and the names under which it is served.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    webroot: PathBuf,
    hosts: HostPolicy,
}

impl Wanted {
    fn of(settings: &Settings) -> Option<Self> {
        match &settings.acme.as_ref()?.responses {
            ChallengeResponses::Webroot(webroot) => Some(Self {
                webroot: webroot.clone(),
                hosts: HostPolicy::of(settings.proxy.secure_names.iter().map(ToString::to_string)),
            }),
            ChallengeResponses::Forward(_) => None,
        }
    }
}

impl ChallengeServer {
    /// Starts, stops or replaces the server, as the settings want. Call it often.
    pub(super) fn tend(&mut self, settings: &Settings, near: NearSockets) {
        let wanted = Wanted::of(settings);
        if self.serving.as_ref().map(|(wanted, _)| wanted) == wanted.as_ref() {
            return;
        }
        // The socket must be free before the next server binds it.
        self.serving = None;
        let Some(wanted) = wanted else { return };
        let webroot = wanted.webroot.clone();
        let site = Site { hosts: wanted.hosts.clone(), pages: Arc::new(move |path| page(&webroot, path)) };
        match Server::start(near.challenges, site) {
            Ok(server) => (self.serving, self.failed) = (Some((wanted, server)), false),
            Err(error) if !self.failed => {
                say(
                    Level::Warning,
                    &format!("cannot serve `tls.acme.webroot` on {}: {error}; trying again", near.challenges),
                );
                self.failed = true;
            }
            Err(_) => {}
        }
    }
}

fn page(webroot: &Path, path: &str) -> Option<Resource> {
    let body = response(webroot, token(path)?).ok()?;
    Some(Resource::ok(MEDIA_TYPE, body))
}

/// Returns the token of a challenge's path. A token has the characters of base64url (RFC 8555 section 8.3), so it names
/// no other folder.
fn token(path: &str) -> Option<&str> {
    let token = path.strip_prefix(PREFIX)?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (!token.is_empty() && token.bytes().all(allowed)).then_some(token)
}

/// Reads the response to the challenge with this token. Follows no symbolic link below `webroot`, and reads only a
/// regular file of text with at most [`MOST_BYTES`].
fn response(webroot: &Path, token: &str) -> io::Result<String> {
    let folder = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = openat(CWD, webroot, folder, Mode::empty())?;
    for name in [".well-known", "acme-challenge"] {
        at = openat(&at, name, folder | OFlags::NOFOLLOW, Mode::empty())?;
    }
    // Opening a pipe must not wait for its other end.
    let regular = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(&at, token, regular, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > MOST_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = String::new();
    file.take(MOST_BYTES).read_to_string(&mut body)?;
    Ok(body)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const TOKEN: &str = "evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr_oA";

    fn webroot() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let challenges = folder.path().join(".well-known/acme-challenge");
        fs::create_dir_all(&challenges).unwrap();
        (folder, challenges)
    }

    #[test]
    fn a_token_has_the_characters_of_base64url_and_no_other() {
        assert_eq!(token(&format!("{PREFIX}{TOKEN}")), Some(TOKEN));
        for other in ["", ".", "..", "a/b", "../a", "a.b", "a%2fb", "a b", "\u{e4}", "a\0"] {
            assert_eq!(token(&format!("{PREFIX}{other}")), None, "{other:?}");
        }
        assert_eq!(token("/.well-known/acme-challenge"), None);
        assert_eq!(token("/a"), None);
    }

    #[test]
    fn a_file_below_the_webroot_is_served() {
        let (root, challenges) = webroot();
        fs::write(challenges.join(TOKEN), "token.thumbprint").unwrap();
        let path = format!("{PREFIX}{TOKEN}");
        let served = page(root.path(), &path).unwrap();
        assert_eq!((served.media_type, &*served.body), (MEDIA_TYPE, "token.thumbprint"));
        assert_eq!(page(root.path(), &format!("{path}x")), None);
        assert_eq!(page(root.path(), "/"), None);
    }

    #[test]
    fn links_folders_and_large_files_are_not_served() {
        let (root, challenges) = webroot();
        let secret = root.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        symlink(&secret, challenges.join("link")).unwrap();
        fs::create_dir(challenges.join("folder")).unwrap();
        fs::write(challenges.join("large"), vec![b'a'; 4097]).unwrap();
        fs::write(challenges.join("largest"), vec![b'a'; 4096]).unwrap();
        rustix::fs::mknodat(CWD, challenges.join("pipe"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        for token in ["link", "folder", "large", "pipe", "absent"] {
            assert!(response(root.path(), token).is_err(), "{token}");
        }
        assert_eq!(response(root.path(), "largest").unwrap().len(), 4096);
        let other = tempfile::tempdir().unwrap();
        symlink(root.path().join(".well-known"), other.path().join(".well-known")).unwrap();
        assert!(response(other.path(), "largest").is_err(), "a folder that is a link");
    }
}
