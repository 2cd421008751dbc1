//! Origins that respond as the test says and record the requests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::envoy::PATIENCE;
use super::eventually;
use super::tls::Identity;

/// A request as an origin saw it.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) path: String,
    /// The names are in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// The response of an origin.
pub(crate) enum Reply {
    /// A head and a whole body. The origin adds Content-Length.
    Whole(String, Vec<u8>),
    /// A head and a chunked body, with a pause before each piece.
    Chunked(String, Duration, Vec<Vec<u8>>),
    /// A head and a chunked body. Each piece follows once the client has those before it.
    Awaited(String, Vec<Vec<u8>>, Arc<Progress>),
    /// These bytes. Then the origin closes the connection.
    Raw(Vec<u8>),
}

impl Reply {
    /// 200 with these header lines (each ending in CRLF) and this body.
    pub(crate) fn ok(headers: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::Whole(format!("HTTP/1.1 200 OK\r\n{headers}"), body.into())
    }
}

/// The number of pieces of a response that its client has received.
#[derive(Default)]
pub(crate) struct Progress {
    had: Mutex<usize>,
    changed: Condvar,
}

impl Progress {
    pub(crate) fn add_one(&self) {
        *self.had.lock().unwrap() += 1;
        self.changed.notify_all();
    }

    /// Fails if a proxy holds a piece back until the next one comes.
    fn reaches(&self, pieces: usize) -> io::Result<()> {
        let had = self.had.lock().unwrap();
        let (_had, waited) = self.changed.wait_timeout_while(had, PATIENCE, |had| *had < pieces).unwrap();
        if waited.timed_out() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

type Behaviour = dyn Fn(&Received) -> Reply + Send + Sync;

/// An HTTP/1.1 origin. Dropping it stops it.
pub(crate) struct Origin {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    connections: AtomicUsize,
    received: Mutex<Vec<Received>>,
    stop: AtomicBool,
    behaviour: Box<Behaviour>,
    identity: Option<Identity>,
}

impl Origin {
    pub(crate) fn start(
        address: impl Into<SocketAddr>,
        behaviour: impl Fn(&Received) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::serve(address.into(), None, Box::new(behaviour))
    }

    /// Over TLS.
    pub(crate) fn start_tls(
        address: impl Into<SocketAddr>,
        identity: Identity,
        behaviour: impl Fn(&Received) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::serve(address.into(), Some(identity), Box::new(behaviour))
    }

    fn serve(address: SocketAddr, identity: Option<Identity>, behaviour: Box<Behaviour>) -> Self {
        let listener = TcpListener::bind(address).expect("the origin binds");
        let shared = Arc::new(Shared {
            connections: AtomicUsize::new(0),
            received: Mutex::default(),
            stop: AtomicBool::new(false),
            behaviour,
            identity,
        });
        let thread = thread::spawn({
            let shared = shared.clone();
            move || {
                for stream in listener.incoming() {
                    if shared.stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let Ok(stream) = stream else { continue };
                    shared.connections.fetch_add(1, Ordering::Relaxed);
                    let shared = shared.clone();
                    thread::spawn(move || shared.connection(stream));
                }
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// TCP connections accepted so far.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Repeats a request until no more of them comes here, because the response is stored.
    pub(crate) fn until_stored(&self, mut ask: impl FnMut()) {
        eventually("the object is stored", || {
            let before = self.received().len();
            ask();
            self.received().len() == before
        });
    }

    /// Every request so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap().clone()
    }

    /// The latest request.
    pub(crate) fn last(&self) -> Received {
        self.received().pop().expect("the origin was asked")
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn connection(&self, stream: TcpStream) {
        // The end of a connection is the client's affair here.
        let _ = match &self.identity {
            None => self.answer_all(stream),
            Some(identity) => identity.accept(stream).and_then(|stream| self.answer_all(stream)),
        };
    }

    fn answer_all(&self, stream: impl Read + Write) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        while let Some(request) = read_request(&mut stream)? {
            self.received.lock().unwrap().push(request.clone());
            let to = stream.get_mut();
            match (self.behaviour)(&request) {
                Reply::Whole(head, body) => {
                    let length = body.len();
                    to.write_all(format!("{head}content-length: {length}\r\n\r\n").as_bytes())?;
                    if request.method != "HEAD" {
                        to.write_all(&body)?;
                    }
                }
                Reply::Chunked(head, pause, pieces) => {
                    to.write_all(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes())?;
                    for piece in pieces {
                        write_chunk(to, &piece)?;
                        thread::sleep(pause);
                    }
                    write_chunk(to, b"")?;
                }
                Reply::Awaited(head, pieces, progress) => {
                    to.write_all(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes())?;
                    for (before, piece) in pieces.iter().enumerate() {
                        progress.reaches(before)?;
                        write_chunk(to, piece)?;
                    }
                    write_chunk(to, b"")?;
                }
                Reply::Raw(bytes) => {
                    to.write_all(&bytes)?;
                    return to.flush();
                }
            }
            to.flush()?;
        }
        Ok(())
    }
}

/// One chunk; an empty one is the last.
fn write_chunk(to: &mut impl Write, piece: &[u8]) -> io::Result<()> {
    to.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
    to.write_all(piece)?;
    to.write_all(b"\r\n")?;
    to.flush()
}

fn read_request(stream: &mut impl BufRead) -> io::Result<Option<Received>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let mut request = Received { method, path, headers, body: Vec::new() };
    let length = request.header("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
    stream.take(length).read_to_end(&mut request.body)?;
    Ok(Some(request))
}
