//! A response on its way from the origin into the store, and its readers.
//!
//! The first client that needs a response leads. Its request goes to the origin, and a task writes the response into the
//! store, at the speed of the origin. The leader and all others read the file while it grows. If the disk fails meanwhile,
//! the leader gets the rest from the task.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use object_store::{Fill, Head, Object, Reader};
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;

use crate::body::{self, Body, CHUNK};
use crate::source::Source;

/// A response whose body is on its way.
#[derive(Debug)]
pub(crate) struct Filling {
    /// The values of the request that selected it, of the fields in its `Vary`.
    pub(crate) selected: Arc<[u8]>,
    /// The head. Its length is 0.
    pub(crate) head: Head,
    /// The length that the origin stated.
    pub(crate) length: Option<u64>,
    reader: Reader,
    growth: watch::Receiver<Growth>,
}

/// How far the file has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// So many bytes are there, and more follow.
    To(u64),
    /// The body is complete, with so many bytes.
    Whole(u64),
    /// The disk or the origin failed after so many bytes.
    Broken(u64),
}

/// The bytes that follow for the leader after the disk has failed.
pub(crate) type Rest = mpsc::Receiver<io::Result<Bytes>>;

/// The task's end of a filling.
#[derive(Debug)]
pub(crate) struct Writer {
    growth: watch::Sender<Growth>,
    rest: mpsc::Sender<io::Result<Bytes>>,
    fill: Option<Fill>,
    most_bytes: u64,
    written: u64,
}

/// Begins to write a response. `most_bytes` bounds its body.
pub(crate) fn begin(
    selected: Arc<[u8]>,
    head: Head,
    length: Option<u64>,
    fill: Fill,
    most_bytes: u64,
) -> (Filling, Writer, Rest) {
    let (growth, seen) = watch::channel(Growth::To(0));
    let (rest, following) = mpsc::channel(2);
    let filling = Filling { selected, head, length, reader: fill.reader(), growth: seen };
    (filling, Writer { growth, rest, fill: Some(fill), most_bytes, written: 0 }, following)
}

impl Writer {
    /// Writes a body until it ends. Returns the stored response if it is whole.
    pub(crate) async fn write(mut self, body: Incoming, length: Option<u64>) -> Option<Arc<Object>> {
        let mut source = Source::new(body);
        loop {
            match source.next().await {
                Ok(Some(chunk)) => self.append(chunk).await,
                Ok(None) if length.is_none_or(|length| length == self.written) => return self.commit().await,
                Ok(None) => return self.give_up(io::ErrorKind::UnexpectedEof.into()).await,
                Err(error) => return self.give_up(error).await,
            }
            if self.fill.is_none() && self.rest.is_closed() {
                return None;
            }
        }
    }

    async fn append(&mut self, chunk: Bytes) {
        let Some(mut fill) = self.fill.take() else {
            // A leader that went away needs no more.
            let _ = self.rest.send(Ok(chunk)).await;
            return;
        };
        let length = self.written.saturating_add(chunk.len() as u64);
        let is_small = length <= self.most_bytes;
        let copy = chunk.clone();
        let written = spawn_blocking(move || {
            let written = if is_small { fill.append(&copy) } else { Err(io::ErrorKind::FileTooLarge.into()) };
            written.map(|()| fill)
        });
        if let Ok(Ok(fill)) = written.await {
            self.fill = Some(fill);
            self.written = length;
            self.growth.send_replace(Growth::To(length));
        } else {
            self.growth.send_replace(Growth::Broken(self.written));
            let _ = self.rest.send(Ok(chunk)).await;
        }
    }

    async fn commit(mut self) -> Option<Arc<Object>> {
        let fill = self.fill.take()?;
        let stored = spawn_blocking(move || fill.commit()).await;
        // The readers have the whole body, also if it got no name.
        self.growth.send_replace(Growth::Whole(self.written));
        stored.ok()?.ok()
    }

    /// The origin broke off. No reader may take the body for a whole one.
    async fn give_up(mut self, error: io::Error) -> Option<Arc<Object>> {
        if self.fill.take().is_some() {
            self.growth.send_replace(Growth::Broken(self.written));
        }
        let _ = self.rest.send(Err(error)).await;
        None
    }
}

impl Filling {
    /// Returns a body from the byte `from` to before `to`, or to the end. Its `rest` follows if the disk fails.
    pub(crate) fn body(self: &Arc<Self>, from: u64, to: Option<u64>, rest: Option<Rest>) -> Body {
        let (sent, body) = mpsc::channel(2);
        let end = to.or(self.length);
        let length = end.map(|end| end.saturating_sub(from));
        tokio::spawn(Arc::clone(self).follow(from, end.unwrap_or(u64::MAX), rest, sent));
        Body::Sent(body, length)
    }

    async fn follow(self: Arc<Self>, mut at: u64, end: u64, rest: Option<Rest>, sent: mpsc::Sender<io::Result<Bytes>>) {
        let mut growth = self.growth.clone();
        loop {
            let now = *growth.borrow_and_update();
            let (Growth::To(have) | Growth::Whole(have) | Growth::Broken(have)) = now;
            let have = have.min(end);
            while at < have {
                let most = usize::try_from(have.saturating_sub(at)).unwrap_or(CHUNK).min(CHUNK);
                let read = body::read(&self.reader, at, most).await;
                at = at.saturating_add(read.as_ref().map_or(0, |bytes| bytes.len() as u64));
                let failed = read.is_err();
                if sent.send(read).await.is_err() || failed {
                    return;
                }
            }
            match now {
                _ if at >= end => return,
                Growth::Whole(_) => return,
                Growth::Broken(_) => return broken(rest, &sent).await,
                Growth::To(_) => {}
            }
            if growth.changed().await.is_err() {
                return broken(rest, &sent).await;
            }
        }
    }
}

/// Passes the rest on. Without one, the response breaks off.
async fn broken(rest: Option<Rest>, sent: &mpsc::Sender<io::Result<Bytes>>) {
    let Some(mut rest) = rest else {
        let _ = sent.send(Err(io::ErrorKind::UnexpectedEof.into())).await;
        return;
    };
    while let Some(chunk) = rest.recv().await {
        if sent.send(chunk).await.is_err() {
            return;
        }
    }
}

/// The state of a request to the origin, as those who wait for it see it.
#[derive(Debug, Clone)]
pub(crate) enum Progress {
    /// The origin has not responded.
    Asking,
    /// The body is on its way.
    Filling(Arc<Filling>),
    /// The response is stored. These values of the leader's request selected it.
    Stored(Arc<Object>, Arc<[u8]>),
    /// The response belongs to the leader alone, or there is none.
    Alone,
}

/// The progress of a request, for those who wait.
pub(crate) type Waiting = watch::Receiver<Progress>;

/// Waits until it is known how the origin responds.
pub(crate) async fn known(waiting: &mut Waiting) -> Progress {
    let progress = waiting.wait_for(|progress| !matches!(progress, Progress::Asking)).await;
    progress.map_or(Progress::Alone, |progress| progress.clone())
}
