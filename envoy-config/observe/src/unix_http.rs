//! HTTP over Unix sockets, for the interfaces of Envoy and CoreDNS that obey each client.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, openat};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport};

/// The time that a program on this machine has for a response, over TCP as well.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);
/// The host in the requests. Neither Envoy nor CoreDNS looks at it.
const ORIGIN: &str = "http://localhost";
/// The longest page, in bytes. Envoy's statistics of a large box have a few megabytes.
const MOST_BYTES: u64 = 64 << 20;

/// A response that could not be had.
#[derive(Debug)]
pub enum NoPage {
    /// This user may not connect to the socket.
    Forbidden,
    /// Nobody responds, or the response is no success.
    Absent,
}

/// Returns the page at `target`, such as `/stats?filter=x`.
pub(crate) fn get(socket: &Path, target: &str) -> Result<String, NoPage> {
    let mut response =
        agent(socket, TIMEOUT).get(format!("{ORIGIN}{target}")).call().map_err(|error| NoPage::of(&error))?;
    if response.status() != 200 {
        return Err(NoPage::Absent);
    }
    let body = response.body_mut().with_config().limit(MOST_BYTES).read_to_string();
    body.map_err(|error| NoPage::of(&error))
}

/// Sends an order without a body. Returns true if it was accepted.
pub(crate) fn post(socket: &Path, target: &str) -> bool {
    agent(socket, TIMEOUT).post(format!("{ORIGIN}{target}")).send_empty().is_ok_and(|response| response.status() == 200)
}

/// Returns the status of the response at `target`. None: it did not come within `patience`.
pub(crate) fn status(socket: &Path, target: &str, patience: Duration) -> Option<u16> {
    let response = agent(socket, patience).get(format!("{ORIGIN}{target}")).call().ok()?;
    Some(response.status().as_u16())
}

impl NoPage {
    fn of(error: &ureq::Error) -> Self {
        match error {
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => Self::Forbidden,
            _ => Self::Absent,
        }
    }
}

fn agent(socket: &Path, patience: Duration) -> ureq::Agent {
    let config = ureq::config::Config::builder()
        .timeout_global(Some(patience))
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false)
        .build();
    ureq::Agent::with_parts(config, UnixConnector(socket.to_owned()), Nowhere)
}

/// Connects to a Unix socket with a path of any length. `sun_path` of unix(7) holds 107 bytes, so the name of the socket
/// is looked up in its open folder.
///
/// # Errors
/// The folder cannot be opened, or nobody accepts the connection.
pub(crate) fn connect(socket: &Path) -> io::Result<UnixStream> {
    let folder = socket.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = socket.file_name().unwrap_or(OsStr::new(""));
    let folder = File::from(openat(CWD, folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?);
    UnixStream::connect(Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}

#[derive(Debug)]
struct UnixConnector(PathBuf);

impl Connector<()> for UnixConnector {
    type Out = UnixTransport;

    fn connect(&self, details: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<UnixTransport>, ureq::Error> {
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(UnixTransport { stream: connect(&self.0)?, buffers }))
    }
}

struct UnixTransport {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl fmt::Debug for UnixTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixTransport").finish_non_exhaustive()
    }
}

impl Transport for UnixTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.set_write_timeout(Some(left(timeout)?))?;
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        self.stream.write_all(output).map_err(|error| failure(error, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.set_read_timeout(Some(left(timeout)?))?;
        let input = self.buffers.input_append_buf();
        let read = loop {
            match self.stream.read(input) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let amount = read.map_err(|error| failure(error, timeout))?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    /// Each connection carries one request.
    fn is_open(&mut self) -> bool {
        false
    }
}

/// Returns the time that is left for a read or write. A socket refuses a timeout of zero.
fn left(timeout: NextTimeout) -> Result<Duration, ureq::Error> {
    match timeout.after {
        ureq::unversioned::transport::time::Duration::Exact(Duration::ZERO) => {
            Err(ureq::Error::Timeout(timeout.reason))
        }
        ureq::unversioned::transport::time::Duration::Exact(left) => Ok(left.min(TIMEOUT)),
        ureq::unversioned::transport::time::Duration::NotHappening => Ok(TIMEOUT),
    }
}

fn failure(error: io::Error, timeout: NextTimeout) -> ureq::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ureq::Error::Timeout(timeout.reason),
        _ => ureq::Error::Io(error),
    }
}

/// ureq resolves the host of every request. The connector does not look at the result.
#[derive(Debug)]
struct Nowhere;

impl Resolver for Nowhere {
    fn resolve(
        &self,
        _: &ureq::http::Uri,
        _: &ureq::config::Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut addresses = self.empty();
        let _ = addresses.try_push(SocketAddr::from((Ipv4Addr::LOCALHOST, 80)));
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;

    /// Serves one connection with `response`, and returns the first line of the request.
    fn serve(listener: UnixListener, response: &'static str) -> thread::JoinHandle<String> {
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().unwrap().unwrap();
            while lines.next().unwrap().unwrap() != "" {}
            stream.write_all(response.as_bytes()).unwrap();
            first
        })
    }

    #[test]
    fn a_page_and_an_order_pass_a_socket_whose_path_is_longer_than_an_address() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d".repeat(120));
        fs::create_dir(&deep).unwrap();
        let bind = |name: &str| {
            let handle = File::open(&deep).unwrap();
            let short = Path::new("/proc/self/fd").join(handle.as_raw_fd().to_string()).join(name);
            UnixListener::bind(short).unwrap()
        };
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\na 1\r\n2\r\n\nb\r\n0\r\n\r\n";
        let server = serve(bind("admin.sock"), chunked);
        assert_eq!(get(&deep.join("admin.sock"), "/stats?filter=a%2E").unwrap(), "a 1\nb");
        assert_eq!(server.join().unwrap(), "GET /stats?filter=a%2E HTTP/1.1");
        let server = serve(bind("order.sock"), "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        assert!(post(&deep.join("order.sock"), "/drain_listeners"));
        assert_eq!(server.join().unwrap(), "POST /drain_listeners HTTP/1.1");
        let server = serve(bind("refused.sock"), "HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n");
        assert!(matches!(get(&deep.join("refused.sock"), "/"), Err(NoPage::Absent)));
        server.join().unwrap();
        assert!(matches!(get(&deep.join("absent.sock"), "/"), Err(NoPage::Absent)));
    }
}
