//! Connections: one thread, few at a time, each for one request and a short time.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Semaphore, oneshot};

use super::respond::Site;

/// Connections at a time; others wait in the queue of the kernel.
const CONNECTIONS: usize = 32;
/// The longest header of a request, in bytes. hyper needs at least 8 KiB.
const HEADER_BYTES: usize = 8 << 10;
/// The most fields of a request.
const FIELDS: usize = 64;
/// The longest time for the header of a request.
const HEADER_PATIENCE: Duration = Duration::from_secs(5);
/// The longest time for a request and its response.
const PATIENCE: Duration = Duration::from_secs(20);
/// The wait after a connection could not be accepted, for example because no file is left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A thread that serves pages until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `site` on `socket`.
    ///
    /// # Errors
    /// The socket cannot be bound, or the thread cannot be started.
    pub(crate) fn start(socket: SocketAddr, site: Site) -> io::Result<Self> {
        let listener = TcpListener::bind(socket)?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("pages".to_owned()).spawn(move || {
            runtime.block_on(async {
                // Only registers the socket with the runtime.
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::spawn(serve(listener, site));
                let _ = stopped.await;
            });
            // A page that waits for a child must not delay the end.
            runtime.shutdown_background();
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: tokio::net::TcpListener, site: Site) {
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        // Never closed, so this is always a permit.
        let permit = Arc::clone(&free).acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let site = site.clone();
        tokio::spawn(async move {
            let respond = service_fn(|request: Request<Incoming>| respond(site.clone(), request));
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEADER_PATIENCE);
            http.keep_alive(false).max_buf_size(HEADER_BYTES).max_headers(FIELDS);
            // A connection that breaks or takes too long is the end of one request.
            let _ = tokio::time::timeout(PATIENCE, http.serve_connection(TokioIo::new(stream), respond)).await;
            drop(permit);
        });
    }
}

async fn respond(
    site: Site,
    request: Request<Incoming>,
) -> Result<Response<http_body_util::Full<hyper::body::Bytes>>, Infallible> {
    // The body is dropped unread.
    let (head, _) = request.into_parts();
    let made = tokio::task::spawn_blocking(move || site.respond(&head.method, &head.uri, &head.headers));
    Ok(made.await.unwrap_or_else(|_| {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        response
    }))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::super::{HostPolicy, Resource};
    use super::*;

    fn exchange(socket: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        // The server may refuse before it has read everything.
        let _ = stream.write_all(request);
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        String::from_utf8_lossy(&response).into_owned()
    }

    #[test]
    fn pages_are_served_and_large_headers_are_refused() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let pages = Arc::new(|path: &str| Some(Resource::ok("text/plain", path.to_owned())));
        let server = Server::start(socket, Site { hosts: HostPolicy::of([]), pages }).unwrap();
        let get = |fields: &str| format!("GET /a HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n");
        let response = exchange(socket, get("").as_bytes());
        assert!(response.starts_with("HTTP/1.1 200 ") && response.ends_with("\r\n\r\n/a"), "{response}");
        let head = exchange(socket, get("").replace("GET", "HEAD").as_bytes());
        assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
        let large = exchange(socket, get(&format!("x: {}\r\n", "a".repeat(2 * HEADER_BYTES))).as_bytes());
        assert!(large.starts_with("HTTP/1.1 431 "), "{large}");
        let many = exchange(socket, get(&"x: y\r\n".repeat(FIELDS + 1)).as_bytes());
        assert!(many.starts_with("HTTP/1.1 431 "), "{many}");
        assert!(exchange(socket, b"\x16\x03\x01\r\n\r\n").starts_with("HTTP/1.1 400 "));
        drop(server);
        assert!(TcpStream::connect(socket).is_err(), "nothing is left");
    }
}
