//! Serves the responses to ACME challenges from `tls.acme.webroot`, on a loopback socket that only Envoy uses.
//!
//! Envoy's routes have checked name, path and method of a request before (`part/challenge_routes.yaml`). Other programs
//! on this host reach the socket too, so the token is checked again here.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::fs::{CWD, Mode, OFlags, openat};
use tokio::sync::oneshot;

use super::log::Level;
use super::say;
use crate::config::{ChallengeResponses, Settings};
use crate::render::NearSockets;

/// The path of a challenge up to its token (RFC 8555 section 8.3).
const PREFIX: &str = "/.well-known/acme-challenge/";
/// The longest response, in bytes. A key authorization has a token of about 43 bytes and a thumbprint of 43 bytes.
const MOST_BYTES: u64 = 4096;
/// The longest time for the header of a request. Envoy sends it in one piece.
const HEADER_PATIENCE: Duration = Duration::from_secs(5);
/// The wait after a connection could not be accepted, for example because no file is left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// The server. It serves nothing until `tls.acme.webroot` is set.
#[derive(Debug, Default)]
pub(super) struct ChallengeServer {
    serving: Option<Serving>,
    /// True if the last attempt to start failed. The reason has been reported.
    failed: bool,
}

/// A thread that serves one folder until it is dropped.
#[derive(Debug)]
struct Serving {
    webroot: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ChallengeServer {
    /// Starts, stops or replaces the server, as the settings want. Call it often.
    pub(super) fn tend(&mut self, settings: &Settings, near: NearSockets) {
        let wanted = match settings.acme.as_ref().map(|acme| &acme.responses) {
            Some(ChallengeResponses::Webroot(folder)) => Some(folder),
            Some(ChallengeResponses::Forward(_)) | None => None,
        };
        if self.serving.as_ref().map(|serving| &serving.webroot) == wanted {
            return;
        }
        // The socket must be free before the next server binds it.
        self.serving = None;
        let Some(webroot) = wanted else { return };
        match Serving::start(near.challenges, webroot) {
            Ok(serving) => (self.serving, self.failed) = (Some(serving), false),
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

impl Serving {
    fn start(socket: SocketAddr, webroot: &Path) -> io::Result<Self> {
        let listener = TcpListener::bind(socket)?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let folder: Arc<Path> = webroot.into();
        let thread = thread::Builder::new().name("challenges".to_owned()).spawn(move || {
            runtime.block_on(async {
                // Only registers the socket with the runtime.
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::spawn(serve(listener, folder));
                // The end of the runtime ends its connections.
                let _ = stopped.await;
            });
        })?;
        Ok(Self { webroot: webroot.to_owned(), stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: tokio::net::TcpListener, webroot: Arc<Path>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let webroot = Arc::clone(&webroot);
        tokio::spawn(async move {
            let respond = service_fn(|request: Request<Incoming>| {
                let response = respond(&webroot, request.method(), request.uri().path());
                async move { Ok::<_, Infallible>(response) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            let http = http.timer(TokioTimer::new()).header_read_timeout(HEADER_PATIENCE);
            // A connection that breaks is the end of one request.
            let _ = http.serve_connection(TokioIo::new(stream), respond).await;
        });
    }
}

fn respond(webroot: &Path, method: &Method, path: &str) -> Response<Full<Bytes>> {
    let read = matches!(*method, Method::GET | Method::HEAD).then_some(path).and_then(token);
    let found = read.and_then(|token| response(webroot, token).ok());
    let (status, media_type, body) = match found {
        // The media type of RFC 8555 section 8.3.
        Some(body) => (StatusCode::OK, "application/octet-stream", Bytes::from(body)),
        None => (StatusCode::NOT_FOUND, "text/plain", Bytes::from_static(b"404 there is no such challenge\n")),
    };
    let response = Response::builder().status(status).header(CONTENT_TYPE, media_type);
    response.header(CACHE_CONTROL, "no-store").body(Full::new(body)).unwrap_or_default()
}

/// Returns the token of a challenge's path. A token has the characters of base64url (RFC 8555 section 8.3), so it names
/// no other folder.
fn token(path: &str) -> Option<&str> {
    let token = path.strip_prefix(PREFIX)?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (!token.is_empty() && token.bytes().all(allowed)).then_some(token)
}

/// Reads the response to the challenge with this token. Follows no symbolic link below `webroot`, and reads only a
/// regular file of at most [`MOST_BYTES`].
fn response(webroot: &Path, token: &str) -> io::Result<Vec<u8>> {
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
    let mut body = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut body)?;
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

    fn status(webroot: &Path, path: &str) -> u16 {
        respond(webroot, &Method::GET, path).status().as_u16()
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
    fn a_file_below_the_webroot_is_served_and_only_for_reading() {
        let (root, challenges) = webroot();
        fs::write(challenges.join(TOKEN), "token.thumbprint").unwrap();
        let path = format!("{PREFIX}{TOKEN}");
        assert_eq!(response(root.path(), TOKEN).unwrap(), b"token.thumbprint");
        assert_eq!(status(root.path(), &path), 200);
        assert_eq!(status(root.path(), &format!("{path}x")), 404);
        assert_eq!(respond(root.path(), &Method::POST, &path).status(), 404);
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
