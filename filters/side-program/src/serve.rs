//! The socket: connections, and their end.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::{MOST_FIELDS, line};

/// The longest time for requests under way, once the program is to end.
const DRAIN: Duration = Duration::from_secs(10);

/// The pause after an error of `accept`, for example when file descriptors are short.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How a program serves.
#[derive(Debug)]
pub struct Options {
    /// The name in log lines.
    pub program: &'static str,
    /// The socket.
    pub listener: UnixListener,
    /// The send buffer of a connection in bytes. Bytes in it stay readable if the process dies.
    pub send_buffer_bytes: usize,
}

/// Opens a socket that this user alone can use. A socket of an earlier process gives way.
///
/// # Errors
/// The socket cannot be opened.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Serves until `end` completes, then finishes the requests under way.
pub async fn serve<R, F, B, E>(options: Options, end: impl Future<Output = ()>, respond: R)
where
    R: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<B>, E>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
{
    let (draining, drain) = watch::channel(());
    let accepting = async {
        loop {
            match options.listener.accept().await {
                Ok((stream, _)) => {
                    let _ = rustix::net::sockopt::set_socket_send_buffer_size(&stream, options.send_buffer_bytes);
                    tokio::spawn(connection(stream, respond.clone(), drain.clone()));
                }
                Err(error) => {
                    line(options.program, &format!("cannot accept a connection: {error}"));
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        () = accepting => {}
        () = end => {}
    }
    drop(drain);
    // A connection that nobody accepts would wait for the end of the program. Envoy repeats its request past it at once.
    drop(options.listener);
    // Completes when the last connection has dropped its receiver.
    let _ = draining.send(());
    let _ = timeout(DRAIN, draining.closed()).await;
}

async fn connection<R, F, B, E>(stream: UnixStream, respond: R, mut drain: watch::Receiver<()>)
where
    R: Fn(Request<Incoming>) -> F,
    F: Future<Output = Result<Response<B>, E>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let serving =
        http1::Builder::new().max_headers(MOST_FIELDS).serve_connection(TokioIo::new(stream), service_fn(respond));
    let mut serving = std::pin::pin!(serving);
    // An error is a client that went away, or an origin that was not reached. Envoy reports both.
    tokio::select! {
        _ = serving.as_mut() => return,
        _ = drain.changed() => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}
