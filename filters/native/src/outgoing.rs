//! A response that a filter gives instead of the server: as much of it as the client takes at a time.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;

use filter_host::Slice;
use filter_host::headers::Pairs;

use crate::abi::{Stream, StreamBell};

/// The bytes that Envoy gets at once. It copies them, and holds them for a client that is slow.
const CHUNK: usize = 256 * 1024;

/// A response. Its stream may end while a call sends a part of it, so its sender holds it until the call has returned.
#[derive(Debug)]
pub(crate) struct Outgoing {
    fields: Pairs,
    body: RefCell<VecDeque<Slice>>,
    /// How many buffers on the way to the client are full.
    full: Cell<u32>,
    is_sending: Cell<bool>,
    has_ended: Cell<bool>,
    /// Announces that there is room again.
    bell: OnceCell<StreamBell>,
}

impl Outgoing {
    pub(crate) fn new(fields: Pairs, body: Vec<Slice>) -> Self {
        Self {
            fields,
            body: RefCell::new(body.into_iter().filter(|slice| !slice.bytes().is_empty()).collect()),
            full: Cell::default(),
            is_sending: Cell::default(),
            has_ended: Cell::default(),
            bell: OnceCell::new(),
        }
    }

    /// Begins the response. The stream may be gone afterwards.
    pub(crate) fn start(&self, stream: Stream) {
        let has_body = !self.body.borrow().is_empty();
        stream.send_headers(&self.fields, !has_body);
        if has_body {
            self.go_on(stream);
        }
    }

    /// A buffer on the way to the client is full.
    pub(crate) fn hold_back(&self) {
        self.full.set(self.full.get().saturating_add(1));
    }

    /// A buffer on the way to the client has room again. The response goes on in an event of its own ([`Self::go_on`]): Envoy
    /// calls further hooks of the stream after this one, and does not expect its end meanwhile.
    pub(crate) fn release(&self, stream: Stream) {
        self.full.set(self.full.get().saturating_sub(1));
        let waits = self.full.get() == 0 && !self.body.borrow().is_empty();
        if waits && !self.has_ended.get() {
            self.bell.get_or_init(|| stream.bell()).ring();
        }
    }

    /// The stream has ended, and takes no more calls.
    pub(crate) fn end(&self) {
        self.has_ended.set(true);
    }

    /// Sends as much as the client takes. The stream may be gone afterwards.
    pub(crate) fn go_on(&self, stream: Stream) {
        // A call that sends a part may lead back here. The loop that made it goes on.
        if self.is_sending.replace(true) {
            return;
        }
        while !self.has_ended.get() && self.full.get() == 0 {
            let Some((part, is_last)) = self.next() else { break };
            stream.send_data(part.bytes(), is_last);
        }
        self.is_sending.set(false);
    }

    /// Takes the next part of the body, and tells if it is the last one.
    fn next(&self) -> Option<(Slice, bool)> {
        let mut body = self.body.borrow_mut();
        let first = body.front_mut()?;
        let part = first.take_front(CHUNK)?;
        if first.bytes().is_empty() {
            body.pop_front();
        }
        Some((part, body.is_empty()))
    }
}
