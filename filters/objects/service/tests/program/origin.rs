//! An origin that plays a script.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

pub(crate) use crate::gate::Gate;
use crate::parts::Ranged;

#[derive(Clone)]
enum Step {
    Send(Vec<u8>),
    Wait(Gate),
    /// The end of the connection.
    Close,
}

/// A response of the origin, step by step.
#[derive(Clone, Default)]
pub(crate) struct Answer(Vec<Step>);

impl Answer {
    /// Begins a response with a status line and lines of fields, and says how its body ends.
    pub(crate) fn begin(status: &str, fields: &str, framing: &str) -> Self {
        let lines = lines(fields);
        Self::default().send(format!("HTTP/1.1 {status}\r\n{lines}{framing}\r\n").as_bytes())
    }

    pub(crate) fn status(status: &str, fields: &str, body: &[u8]) -> Self {
        let length = format!("content-length: {}\r\n", body.len());
        let framing = if status.starts_with("304") { "" } else { &length };
        Self::begin(status, fields, framing).send(body)
    }

    pub(crate) fn whole(fields: &str, body: &[u8]) -> Self {
        Self::status("200 OK", fields, body)
    }

    pub(crate) fn sized(fields: &str, length: usize) -> Self {
        Self::begin("200 OK", fields, &format!("content-length: {length}\r\n"))
    }

    pub(crate) fn chunked(fields: &str) -> Self {
        Self::begin("200 OK", fields, "transfer-encoding: chunked\r\n")
    }

    pub(crate) fn send(mut self, bytes: &[u8]) -> Self {
        self.0.push(Step::Send(bytes.to_vec()));
        self
    }

    /// Sends a chunk. An empty one is the end of the body.
    pub(crate) fn chunk(self, bytes: &[u8]) -> Self {
        self.send(&[format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
    }

    pub(crate) fn wait(mut self, gate: &Gate) -> Self {
        self.0.push(Step::Wait(gate.clone()));
        self
    }

    pub(crate) fn close(mut self) -> Self {
        self.0.push(Step::Close);
        self
    }

    /// Waits before the first byte.
    pub(crate) fn after(gate: &Gate, answer: Self) -> Self {
        Self(vec![Step::Wait(gate.clone())].into_iter().chain(answer.0).collect())
    }

    fn play(&self, stream: &mut UnixStream) -> bool {
        self.0.iter().all(|step| match step {
            Step::Send(bytes) => stream.write_all(bytes).is_ok(),
            Step::Wait(gate) => {
                gate.pass();
                true
            }
            Step::Close => {
                let _ = stream.shutdown(Shutdown::Both);
                false
            }
        })
    }
}

#[derive(Default)]
struct State {
    scripts: Mutex<HashMap<String, VecDeque<Answer>>>,
    ranged: Mutex<HashMap<String, Arc<Ranged>>>,
    asked: Mutex<Vec<(String, String)>>,
    streams: Mutex<Vec<UnixStream>>,
}

impl State {
    /// Returns the next response to a path. The last one repeats.
    fn next(&self, path: &str) -> Answer {
        let mut scripts = self.scripts.lock().unwrap();
        let script = scripts.get_mut(path).unwrap_or_else(|| panic!("no script for {path}"));
        if script.len() > 1 { script.pop_front().unwrap() } else { script[0].clone() }
    }

    fn serve(&self, mut stream: UnixStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        loop {
            let head = head(&mut reader);
            let Some(path) = head.split(' ').nth(1).map(str::to_owned) else { return };
            self.asked.lock().unwrap().push((path.clone(), head.clone()));
            let ranged = self.ranged.lock().unwrap().get(&path).cloned();
            if let Some(ranged) = ranged {
                if !ranged.respond(&head, &mut stream) {
                    return;
                }
                continue;
            }
            if !self.next(&path).play(&mut stream) {
                return;
            }
        }
    }
}

pub(crate) struct Origin {
    socket: PathBuf,
    state: Arc<State>,
}

impl Origin {
    pub(crate) fn new(socket: PathBuf) -> Self {
        let origin = Self { socket, state: Arc::default() };
        origin.open();
        origin
    }

    pub(crate) fn open(&self) {
        let listener = UnixListener::bind(&self.socket).unwrap();
        let state = Arc::clone(&self.state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, state) = (stream.unwrap(), Arc::clone(&state));
                state.streams.lock().unwrap().push(stream.try_clone().unwrap());
                thread::spawn(move || state.serve(stream));
            }
        });
    }

    /// Ends the connections. The socket stays.
    pub(crate) fn hang_up(&self) {
        for stream in self.state.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn close(&self) {
        std::fs::remove_file(&self.socket).unwrap();
        self.hang_up();
    }

    pub(crate) fn plays(&self, path: &str, answers: impl IntoIterator<Item = Answer>) {
        self.state.scripts.lock().unwrap().insert(path.to_owned(), answers.into_iter().collect());
    }

    /// Serves parts of a body.
    pub(crate) fn serves(&self, path: &str, ranged: &Arc<Ranged>) {
        self.state.ranged.lock().unwrap().insert(path.to_owned(), Arc::clone(ranged));
    }

    /// Returns the heads of the requests for a path.
    pub(crate) fn asked(&self, path: &str) -> Vec<String> {
        let asked = self.state.asked.lock().unwrap();
        asked.iter().filter(|(of, _)| of == path).map(|(_, head)| head.clone()).collect()
    }

    pub(crate) fn count(&self, path: &str) -> usize {
        self.asked(path).len()
    }
}

/// Returns lines as a head has them.
pub(crate) fn lines(fields: &str) -> String {
    fields.lines().flat_map(|line| [line.trim(), "\r\n"]).collect()
}

/// Reads a head. It is empty if the connection ends before it.
pub(crate) fn head(stream: &mut impl BufRead) -> String {
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        if !stream.read_line(&mut text).is_ok_and(|count| count > 0) {
            return String::new();
        }
    }
    text
}

/// Returns the value of a field in a head.
pub(crate) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}
