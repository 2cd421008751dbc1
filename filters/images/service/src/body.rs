//! A body of which a part was read before, and the memory of all such bodies.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use hyper::body::{Bytes, Incoming};

/// Bytes of bodies that are in memory at a time.
const MEMORY_BYTES: usize = 32 * 1024 * 1024;

/// The memory for bodies that is free.
#[derive(Debug)]
pub struct Memory(Arc<AtomicUsize>);

impl Default for Memory {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(MEMORY_BYTES)))
    }
}

impl Memory {
    /// Takes a share of so many bytes. Returns None if less is free.
    pub fn take(&self, bytes: usize) -> Option<Share> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(bytes));
        taken.is_ok().then(|| Share { memory: Arc::clone(&self.0), bytes })
    }
}

/// Memory that is free again when this is dropped.
#[derive(Debug)]
pub struct Share {
    memory: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.memory.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// The pieces that were read, then the rest as it comes.
#[derive(Debug)]
pub struct Resumed {
    pieces: VecDeque<Bytes>,
    rest: Option<Incoming>,
    /// Of the pieces, until the body is gone.
    _share: Option<Share>,
}

impl Resumed {
    /// A body of which `pieces` were read.
    pub fn after(pieces: Vec<Bytes>, rest: Incoming, share: Option<Share>) -> Self {
        Self { pieces: pieces.into(), rest: Some(rest), _share: share }
    }

    /// A body that is whole.
    pub fn whole(pieces: Vec<Bytes>, share: Option<Share>) -> Self {
        Self { pieces: pieces.into(), rest: None, _share: share }
    }
}

impl Body for Resumed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let before: u64 = self.pieces.iter().map(|piece| piece.len() as u64).sum();
        let rest = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(before + rest.lower());
        if let Some(upper) = rest.upper() {
            hint.set_upper(before + upper);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back() {
        let memory = Memory::default();
        let half = memory.take(MEMORY_BYTES / 2);
        assert!(half.is_some() && memory.take(MEMORY_BYTES).is_none());
        drop(half);
        assert!(memory.take(MEMORY_BYTES).is_some());
    }
}
