//! A reader of a sliced object: bytes from the file, from runs on their way, and from new runs.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt;
use object_rules::slices::{Blocks, LEAST_RANGE};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::asker::Asker;
use crate::body::{self, Body, CHUNK};
use crate::receive::{self, Beginning};
use crate::run::{End, Progress, Run};
use crate::sliced::{Interest, Place, Sliced, is_noted};

/// How many blocks before the end of a run the next one is requested. So a long link is never idle.
const AHEAD: u64 = 2;
/// How many runs of other readers in a row may fail.
const MOST_FAILURES: u32 = 2;

/// Where the bytes of a response come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Supply {
    /// All were there.
    Store,
    /// Some are requested.
    Origin,
    /// Another reader's run brings the first ones.
    Other,
}

/// A run whose leader follows it, also where it brings parts of blocks only.
#[derive(Debug)]
pub(crate) struct Lead {
    pub(crate) run: Arc<Run>,
    pub(crate) interest: Interest,
}

/// A reader.
#[derive(Debug)]
pub(crate) struct Reading {
    sliced: Arc<Sliced>,
    asker: Arc<Asker>,
    bytes: Range<u64>,
    led: Option<Arc<Run>>,
    interest: Interest,
}

impl Reading {
    pub(crate) fn new(sliced: &Arc<Sliced>, asker: Asker, bytes: Range<u64>, lead: Option<Lead>) -> Self {
        let interest = sliced.interest(bytes.clone());
        // From here on, this reader's own interest keeps the run going.
        let followed = lead.map(|Lead { run, interest }| {
            drop(interest);
            run
        });
        Self { sliced: Arc::clone(sliced), asker: Arc::new(asker), bytes, led: followed, interest }
    }

    /// Waits until the first byte is there. Returns where the response comes from. None if the first byte cannot be had, or if the
    /// range is too short to request whole blocks. Then the client gets the origin's response.
    pub(crate) async fn begun(&mut self) -> Option<Supply> {
        let at = self.bytes.start;
        if let Some(run) = &self.led {
            return run.reaches(at).await.then_some(Supply::Origin);
        }
        let is_all = has_all(&self.sliced, &self.bytes).await;
        let is_short = self.bytes.end.saturating_sub(at) < LEAST_RANGE;
        let mut touched = self.sliced.blocks().touched(&self.bytes);
        if is_short && !is_all && touched.any(|block| matches!(self.sliced.place(block), Place::Unknown)) {
            return None;
        }
        match self.source(at, Beginning::Request).await.ok()? {
            Source::There => Some(if is_all { Supply::Store } else { Supply::Origin }),
            Source::Coming(run, true) => {
                let has_begun = run.reaches(at).await;
                self.led = Some(run);
                has_begun.then_some(Supply::Origin)
            }
            Source::Coming(run, false) => run.reaches(at).await.then_some(Supply::Other),
        }
    }

    /// Returns the body.
    pub(crate) fn body(self) -> Body {
        let (sent, body) = mpsc::channel(2);
        let length = self.bytes.end.saturating_sub(self.bytes.start);
        tokio::spawn(async move {
            if let Err(error) = self.send(&sent).await {
                let _ = sent.send(Err(error)).await;
            }
        });
        Body::Sent(body, Some(length))
    }

    /// Sends all bytes. Ends early if the client has gone.
    async fn send(mut self, sent: &mpsc::Sender<io::Result<Bytes>>) -> io::Result<()> {
        let mut at = self.bytes.start;
        let mut failures = 0;
        while at < self.bytes.end {
            self.interest.advance(at);
            let block = self.sliced.blocks().bytes(Blocks::of(at));
            let end = block.end.min(self.bytes.end);
            let source = match self.led.take().filter(|run| run.bytes.contains(&at)) {
                Some(run) => Source::Coming(run, true),
                None => self.source(at, Beginning::Rest).await?,
            };
            let Some(now) = self.follow(&source, at, end, sent).await? else { return Ok(()) };
            at = now.at;
            match (now.end, source) {
                (Some(End::Disk), _) => return self.pass(at, sent).await,
                // The run has asked again, without success.
                (Some(End::Changed), _) | (Some(End::Origin), Source::Coming(_, true)) => return Err(broken()),
                (Some(End::Origin), _) => {
                    failures += 1;
                    if failures >= MOST_FAILURES {
                        return Err(broken());
                    }
                }
                (None, Source::Coming(run, true)) => {
                    self.led = Some(run);
                    failures = 0;
                }
                _ => failures = 0,
            }
            self.look_ahead(at).await;
        }
        Ok(())
    }

    /// Requests the bytes at and behind `at` in time. The nearest ones come first.
    async fn look_ahead(&self, at: u64) {
        let block = Blocks::of(at);
        for near in block..=block.saturating_add(AHEAD) {
            let bytes = self.sliced.blocks().bytes(near);
            let (start, end) = (bytes.start.max(at), bytes.end.min(self.bytes.end));
            if start >= end {
                return;
            }
            // The end of the client's range may lie within a block that the run brings in part.
            if self.led.as_ref().is_some_and(|run| run.bytes.start <= start && end <= run.bytes.end) {
                continue;
            }
            // If the disk fails, the reader learns it when it gets there.
            let _ = self.source(start, Beginning::Rest).await;
        }
    }

    /// Finds the block of the byte `at`. Starts a run if it is missing.
    async fn source(&self, at: u64, beginning: Beginning) -> io::Result<Source> {
        let block = Blocks::of(at);
        match self.sliced.place(block) {
            Place::There => return Ok(Source::There),
            Place::Coming(run) => return Ok(Source::Coming(run, false)),
            Place::Unknown => {}
        }
        let file = self.sliced.file.clone();
        let look = move || Ok::<_, io::Error>(if file.check(block)? { None } else { Some(file.noted()?) });
        let Some(noted) = spawn_blocking(look).await.map_err(io::Error::other)?? else { return Ok(Source::There) };
        Ok(match self.sliced.announce(block, self.bytes.end, &noted) {
            Ok(announced) => Source::Coming(receive::start(&self.sliced, &self.asker, announced, beginning), true),
            Err(Place::Coming(run)) => Source::Coming(run, false),
            Err(Place::There | Place::Unknown) => Source::There,
        })
    }

    /// Sends bytes up to `end` as they come. None if the client has gone.
    async fn follow(
        &self,
        source: &Source,
        mut at: u64,
        end: u64,
        sent: &mpsc::Sender<io::Result<Bytes>>,
    ) -> io::Result<Option<Now>> {
        let Source::Coming(run, _) = source else {
            let is_read = self.copy(&mut at, end, sent).await?;
            return Ok(is_read.then_some(Now { at, end: None }));
        };
        let mut progress = run.progress();
        loop {
            let now = *progress.borrow_and_update();
            let have = match now {
                Progress::Asking => at,
                Progress::To(have) | Progress::Ended(have, _) => have.min(end),
            };
            if !self.copy(&mut at, have, sent).await? {
                return Ok(None);
            }
            if at >= end {
                return Ok(Some(Now { at, end: None }));
            }
            if let Progress::Ended(_, why) = now {
                return Ok(Some(Now { at, end: Some(why) }));
            }
            tokio::select! {
                changed = progress.changed() => changed.map_err(io::Error::other)?,
                // A client that leaves must not keep the run going.
                () = sent.closed() => return Ok(None),
            }
        }
    }

    /// Sends bytes of the file. False if the client has gone.
    async fn copy(&self, at: &mut u64, end: u64, sent: &mpsc::Sender<io::Result<Bytes>>) -> io::Result<bool> {
        while *at < end {
            let most = usize::try_from(end.saturating_sub(*at)).unwrap_or(CHUNK).min(CHUNK);
            let bytes = body::read(self.sliced.file.reader(), *at, most).await?;
            *at = at.saturating_add(bytes.len() as u64);
            self.asker.metrics.sent(bytes.len() as u64);
            if sent.send(Ok(bytes)).await.is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Passes the rest on from the origin, because the file takes no bytes.
    async fn pass(&self, mut at: u64, sent: &mpsc::Sender<io::Result<Bytes>>) -> io::Result<()> {
        let asked = self.asker.ask(&self.sliced, &(at..self.bytes.end)).await;
        let mut body = asked.map_err(|_| broken())?;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(io::Error::other)?.into_data() else { continue };
            at = at.saturating_add(data.len() as u64);
            if at > self.bytes.end || sent.send(Ok(data)).await.is_err() {
                break;
            }
        }
        if at == self.bytes.end { Ok(()) } else { Err(broken()) }
    }
}

/// Where the bytes of a block come from.
enum Source {
    There,
    /// True for a run of the reader's own.
    Coming(Arc<Run>, bool),
}

/// How far a reader has come, and why it came no further.
struct Now {
    at: u64,
    end: Option<End>,
}

/// Returns true if the file has all blocks of a range, by its map.
pub(crate) async fn has_all(sliced: &Arc<Sliced>, bytes: &Range<u64>) -> bool {
    let touched = sliced.blocks().touched(bytes);
    if touched.clone().all(|block| sliced.file.is_checked(block)) {
        return true;
    }
    let file = sliced.file.clone();
    let Ok(Ok(noted)) = spawn_blocking(move || file.noted()).await else { return false };
    touched.into_iter().all(|block| is_noted(&noted, block))
}

/// Returns true if all blocks of these ranges are there, and reads them to know.
pub(crate) async fn has_checked(sliced: &Arc<Sliced>, ranges: &[Range<u64>]) -> bool {
    for bytes in ranges {
        if !has_all(sliced, bytes).await {
            return false;
        }
        let (file, mut touched) = (sliced.file.clone(), sliced.blocks().touched(bytes));
        let look = move || touched.all(|block| file.check(block).unwrap_or(false));
        if !spawn_blocking(look).await.unwrap_or(false) {
            return false;
        }
    }
    true
}

fn broken() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}
