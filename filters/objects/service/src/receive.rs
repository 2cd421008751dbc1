//! The task of a run: it writes what the origin sends, at the speed of the origin, and not far ahead of the readers.
//!
//! If the origin breaks off, the task asks again for the missing bytes. Readers wait meanwhile.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use object_rules::slices::BLOCK;
use object_store::SliceWriter;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::asker::Asker;
use crate::run::{End, Progress, Run};
use crate::sliced::{Announced, Sliced};
use crate::source::Source;

/// The waits before the origin is asked again. Many clients give up after half a minute without a byte.
const WAITS: [Duration; 4] =
    [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(3), Duration::from_secs(6)];

/// The beginning of a run.
#[derive(Debug)]
pub(crate) enum Beginning {
    /// The body of a response that has begun.
    Body(Incoming),
    /// A request. The client has no response yet, and gets the origin's own if this request fails.
    Request,
    /// A request for the rest of a response. It is repeated if it fails.
    Rest,
}

/// Starts a run.
pub(crate) fn start(sliced: &Arc<Sliced>, asker: &Arc<Asker>, announced: Announced, beginning: Beginning) -> Arc<Run> {
    let (run, told) = announced;
    let receiving = Receiving {
        at: run.bytes.start,
        sliced: Arc::clone(sliced),
        asker: Arc::clone(asker),
        run: Arc::clone(&run),
        told,
        failures: 0,
    };
    tokio::spawn(receiving.run(beginning));
    run
}

struct Receiving {
    sliced: Arc<Sliced>,
    asker: Arc<Asker>,
    run: Arc<Run>,
    told: watch::Sender<Progress>,
    at: u64,
    /// Requests that failed since the last byte came.
    failures: usize,
}

impl Receiving {
    async fn run(mut self, beginning: Beginning) {
        let end = self.all(beginning).await;
        // Readers that learn of the end must not find the run again.
        self.sliced.forget(&self.run);
        self.told.send_replace(Progress::Ended(self.at, end));
    }

    async fn all(&mut self, beginning: Beginning) -> End {
        let (store, key, file, at) =
            (Arc::clone(&self.asker.store), self.sliced.key, self.sliced.file.clone(), self.at);
        let opened = spawn_blocking(move || store.write_slices(key, &file, at)).await;
        let Ok(Ok(mut writer)) = opened else { return End::Disk };
        let mut body = match beginning {
            Beginning::Body(body) => Ok(body),
            Beginning::Request => match self.ask().await {
                Err(end) => return end,
                body => body,
            },
            Beginning::Rest => self.ask().await,
        };
        loop {
            let end = match body {
                Ok(body) => {
                    self.told.send_replace(Progress::To(self.at));
                    match self.write(writer, body).await {
                        (Some(same), End::Origin) => {
                            writer = same;
                            End::Origin
                        }
                        (_, end) => return end,
                    }
                }
                Err(end) => end,
            };
            let Some(wait) = WAITS.get(self.failures).filter(|_| end == End::Origin) else { return end };
            self.failures += 1;
            sleep(*wait).await;
            if !self.sliced.needs(&self.run, self.at) {
                return End::NotNeeded;
            }
            body = self.ask().await;
        }
    }

    async fn ask(&self) -> Result<Incoming, End> {
        self.asker.ask(&self.sliced, &(self.at..self.run.bytes.end)).await
    }

    /// Writes a body until it ends. Returns the writer if the body broke off.
    async fn write(&mut self, mut writer: SliceWriter, body: Incoming) -> (Option<SliceWriter>, End) {
        let mut source = Source::new(body);
        while self.at < self.run.bytes.end {
            self.sliced.pace(&self.run, self.at).await;
            let Ok(Some(data)) = source.next().await else { return (Some(writer), End::Origin) };
            let end = self.at.saturating_add(data.len() as u64);
            if end > self.run.bytes.end {
                // The origin sends more than it said.
                return (None, End::Changed);
            }
            self.failures = 0;
            self.asker.metrics.fetched(data.len() as u64);
            let written = spawn_blocking(move || writer.append(&data).map(|()| writer)).await;
            let Ok(Ok(same)) = written else { return (None, End::Disk) };
            writer = same;
            let was_in = self.at / BLOCK;
            self.at = end;
            self.told.send_replace(Progress::To(end));
            if end / BLOCK != was_in && end < self.run.bytes.end && !self.sliced.needs(&self.run, end) {
                return (None, End::NotNeeded);
            }
        }
        (None, End::Whole)
    }
}
