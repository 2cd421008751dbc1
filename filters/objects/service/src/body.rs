//! Bodies of responses: from memory, from a file, from a file that grows, or passed on.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use object_store::Reader;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

/// The most bytes that are read from a file at once.
pub(crate) const CHUNK: usize = 128 * 1024;

/// A piece of a body that is complete.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Bytes in memory.
    Bytes(Bytes),
    /// A part of a body in a file.
    File(Reader, Range<u64>),
}

impl Piece {
    fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, range) => range.end.saturating_sub(range.start),
        }
    }
}

/// The body of a response.
#[derive(Debug)]
pub(crate) enum Body {
    /// Pieces, and the read of the first one that waits for the disk.
    Pieces(VecDeque<Piece>, Option<JoinHandle<io::Result<Bytes>>>),
    /// Pieces that another task sends, with their number of bytes if it is known.
    Sent(mpsc::Receiver<io::Result<Bytes>>, Option<u64>),
    /// The origin's body.
    Passed(Incoming),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self::of(Vec::new())
    }

    pub(crate) fn of(pieces: Vec<Piece>) -> Self {
        Self::Pieces(pieces.into_iter().filter(|piece| piece.length() > 0).collect(), None)
    }
}

/// Reads up to `most` bytes at `at`. Waits for the disk in another thread.
pub(crate) async fn read(reader: &Reader, at: u64, most: usize) -> io::Result<Bytes> {
    if let Some(bytes) = read_now(reader, at, most)? {
        return Ok(bytes);
    }
    let reader = reader.clone();
    spawn_blocking(move || read_blocking(&reader, at, most)).await.map_err(io::Error::other)?
}

/// Reads what is in the page cache. None if the disk would be waited for.
fn read_now(reader: &Reader, at: u64, most: usize) -> io::Result<Option<Bytes>> {
    let mut bytes = vec![0; most];
    let count = reader.read_now(at, &mut bytes)?;
    count.map(|count| some(bytes, count)).transpose()
}

fn read_blocking(reader: &Reader, at: u64, most: usize) -> io::Result<Bytes> {
    let mut bytes = vec![0; most];
    let count = reader.read_at(at, &mut bytes)?;
    some(bytes, count)
}

/// A file that ends early is torn.
fn some(mut bytes: Vec<u8>, count: usize) -> io::Result<Bytes> {
    bytes.truncate(count);
    if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes.into()) }
}

/// Gives the next bytes of the first piece, and moves past them.
fn poll_piece(
    pieces: &mut VecDeque<Piece>,
    waiting: &mut Option<JoinHandle<io::Result<Bytes>>>,
    context: &mut Context<'_>,
) -> Poll<Option<io::Result<Bytes>>> {
    let Some(piece) = pieces.front_mut() else { return Poll::Ready(None) };
    let (reader, range) = match piece {
        Piece::Bytes(bytes) => {
            let bytes = std::mem::take(bytes);
            pieces.pop_front();
            return Poll::Ready(Some(Ok(bytes)));
        }
        Piece::File(reader, range) => (reader, range),
    };
    let left = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(CHUNK).min(CHUNK);
    let read = loop {
        if let Some(task) = waiting {
            let done = ready!(Pin::new(task).poll(context));
            *waiting = None;
            break done.map_err(io::Error::other).flatten();
        }
        match read_now(reader, range.start, left) {
            Ok(Some(bytes)) => break Ok(bytes),
            Ok(None) => {
                let (reader, at) = (reader.clone(), range.start);
                *waiting = Some(spawn_blocking(move || read_blocking(&reader, at, left)));
            }
            Err(error) => break Err(error),
        }
    };
    if let Ok(bytes) = &read {
        range.start = range.start.saturating_add(bytes.len() as u64);
        if range.start >= range.end {
            pieces.pop_front();
        }
    }
    Poll::Ready(Some(read))
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Pieces(pieces, waiting) => poll_piece(pieces, waiting, context).map(|read| read.map(framed)),
            Self::Sent(sent, _) => sent.poll_recv(context).map(|read| read.map(framed)),
            Self::Passed(body) => Pin::new(body).poll_frame(context).map_err(io::Error::other),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Pieces(pieces, _) => pieces.is_empty(),
            Self::Sent(..) => false,
            Self::Passed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Pieces(pieces, _) => SizeHint::with_exact(pieces.iter().map(Piece::length).sum()),
            Self::Sent(_, length) => length.map_or_else(SizeHint::default, SizeHint::with_exact),
            Self::Passed(body) => body.size_hint(),
        }
    }
}

fn framed(read: io::Result<Bytes>) -> io::Result<Frame<Bytes>> {
    read.map(Frame::data)
}
