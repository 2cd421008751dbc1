//! The bytes that a client has sent, and its streams that wait.

use std::collections::VecDeque;

use crate::burst::{Burst, FIRST};

/// A stream. Numbers are not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub(crate) u64);

/// The bounds between the classes of a client's streams, in bytes that a stream has sent. Below the first are handshakes,
/// lookups and the beginnings of pages, below the second are style sheets, scripts and most images.
const CLASSES: [u64; 2] = [FIRST, BULK];

/// The number of classes.
pub(crate) const ALL: usize = CLASSES.len() + 1;

/// The bytes after which a stream is a download or an upload, which everything else passes.
pub(crate) const BULK: u64 = 256 * 1024;

/// A client of the link.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// The virtual time up to which it has been served.
    pub(crate) served: u128,
    /// The bytes that it may send before others.
    pub(crate) burst: Burst,
    /// The number of its open streams.
    pub(crate) streams: usize,
    /// The number of those that have bytes which wait, also for their connection.
    pub(crate) holding: usize,
    /// Its streams that wait, by class and in the order in which they came.
    waiting: [VecDeque<StreamId>; ALL],
}

impl Account {
    /// Adds a stream that waits, and has sent `sent` bytes.
    pub(crate) fn wait(&mut self, stream: StreamId, sent: u64) {
        if let Some(class) = self.class(sent) {
            class.push_back(stream);
        }
    }

    /// Adds a stream that waits before the others of its class.
    pub(crate) fn wait_first(&mut self, stream: StreamId, sent: u64) {
        if let Some(class) = self.class(sent) {
            class.push_front(stream);
        }
    }

    fn class(&mut self, sent: u64) -> Option<&mut VecDeque<StreamId>> {
        self.waiting.get_mut(CLASSES.iter().filter(|bound| sent >= **bound).count())
    }

    /// Takes the stream that is next among the first `classes`.
    pub(crate) fn next(&mut self, classes: usize) -> Option<StreamId> {
        self.waiting.iter_mut().take(classes).find_map(VecDeque::pop_front)
    }

    /// Takes a stream out of those that wait.
    pub(crate) fn leave(&mut self, stream: StreamId) {
        for class in &mut self.waiting {
            class.retain(|other| *other != stream);
        }
    }

    /// Returns the number of its streams that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }

    /// Returns true if a stream of the first `classes` waits.
    pub(crate) fn has_waiting(&self, classes: usize) -> bool {
        self.waiting.iter().take(classes).any(|class| !class.is_empty())
    }
}
