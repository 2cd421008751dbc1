//! An origin that serves parts of a body.

use std::collections::VecDeque;
use std::io::Write;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::gate::Gate;

/// A body and its validator, which may change.
pub(crate) struct Ranged {
    state: Mutex<State>,
    /// Bytes of bodies that were sent.
    sent: AtomicUsize,
    /// Responses that the program did not want to the end.
    left: AtomicUsize,
    /// True if the origin sends the whole to every request.
    ignores_ranges: AtomicBool,
    /// True if the origin sends a part of what it has, whatever the program has.
    ignores_if_range: AtomicBool,
}

struct State {
    body: Vec<u8>,
    tag: String,
    fields: String,
    /// The next responses break off after so many bytes.
    breaks: VecDeque<usize>,
    /// Responses stop at these bytes of the body until the gate is open.
    gates: Vec<(usize, Gate)>,
}

impl Ranged {
    /// `fields` are those of every response, without the tag.
    pub(crate) fn new(fields: &str, tag: &str, body: Vec<u8>) -> Arc<Self> {
        let (tag, fields) = (tag.to_owned(), fields.to_owned());
        let state = State { body, tag, fields, breaks: VecDeque::new(), gates: Vec::new() };
        Arc::new(Self {
            state: Mutex::new(state),
            sent: AtomicUsize::new(0),
            left: AtomicUsize::new(0),
            ignores_ranges: AtomicBool::new(false),
            ignores_if_range: AtomicBool::new(false),
        })
    }

    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }

    pub(crate) fn left(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }

    pub(crate) fn changes(&self, tag: &str, body: Vec<u8>) {
        let mut state = self.state.lock().unwrap();
        (state.tag, state.body) = (tag.to_owned(), body);
    }

    pub(crate) fn says(&self, fields: &str) {
        fields.clone_into(&mut self.state.lock().unwrap().fields);
    }

    pub(crate) fn ignores_ranges(&self, does: bool) {
        self.ignores_ranges.store(does, Ordering::SeqCst);
    }

    pub(crate) fn ignores_if_range(&self) {
        self.ignores_if_range.store(true, Ordering::SeqCst);
    }

    pub(crate) fn breaks_after(&self, bytes: impl IntoIterator<Item = usize>) {
        self.state.lock().unwrap().breaks = bytes.into_iter().collect();
    }

    /// Stops responses at a byte of the body.
    pub(crate) fn stops_at(&self, at: usize) -> Gate {
        let gate = Gate::default();
        self.state.lock().unwrap().gates.push((at, gate.clone()));
        gate
    }

    /// Responds to a request, but not to one for several ranges. False at the end of the connection.
    pub(crate) fn respond(&self, asked: &str, stream: &mut UnixStream) -> bool {
        if crate::origin::field(asked, "range").is_some_and(|range| range.contains(',')) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
            return false;
        }
        let mut state = self.state.lock().unwrap();
        let total = state.body.len();
        let common = format!("etag: {}\r\naccept-ranges: bytes\r\n{}", state.tag, crate::origin::lines(&state.fields));
        let is = |name: &str| crate::origin::field(asked, name).map(|value| value == state.tag);
        if is("if-none-match") == Some(true) {
            return write!(stream, "HTTP/1.1 304 Not Modified\r\n{common}\r\n").is_ok();
        }
        let is_current = is("if-range") != Some(false) || self.ignores_if_range.load(Ordering::SeqCst);
        let wants_part = !self.ignores_ranges.load(Ordering::SeqCst) && is_current;
        let part = crate::origin::field(asked, "range").filter(|_| wants_part).map(|range| part(range, total));
        let (head, part) = match part {
            None => ("HTTP/1.1 200 OK\r\n".to_owned(), 0..total),
            Some(None) => {
                let head = format!("HTTP/1.1 416 Range Not Satisfiable\r\ncontent-range: bytes */{total}\r\n");
                (head, 0..0)
            }
            Some(Some(part)) => {
                let (first, last) = (part.start, part.end - 1);
                (format!("HTTP/1.1 206 Partial Content\r\ncontent-range: bytes {first}-{last}/{total}\r\n"), part)
            }
        };
        let body = state.body[part.clone()].to_vec();
        let breaks = state.breaks.pop_front();
        let gates = state.gates.clone();
        drop(state);
        if write!(stream, "{head}{common}content-length: {}\r\n\r\n", body.len()).is_err() {
            return false;
        }
        for (at, chunk) in (0..).step_by(1 << 15).zip(body.chunks(1 << 15)) {
            if breaks.is_some_and(|most| at >= most) {
                let _ = stream.shutdown(std::net::Shutdown::Both);
                return false;
            }
            let place = part.start + at;
            gates
                .iter()
                .filter(|(stop, _)| (place..place + chunk.len()).contains(stop))
                .for_each(|(_, gate)| gate.pass());
            // A client that has the bytes must find them counted.
            self.sent.fetch_add(chunk.len(), Ordering::SeqCst);
            if stream.write_all(chunk).is_err() {
                self.left.fetch_add(1, Ordering::SeqCst);
                return false;
            }
        }
        true
    }
}

/// Reads a single range.
fn part(range: &str, total: usize) -> Option<Range<usize>> {
    let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    let part = match (first, last) {
        ("", count) => total.saturating_sub(count.parse().unwrap())..total,
        (first, "") => first.parse().unwrap()..total,
        (first, last) => first.parse().unwrap()..total.min(last.parse::<usize>().unwrap() + 1),
    };
    (part.start < part.end).then_some(part)
}
