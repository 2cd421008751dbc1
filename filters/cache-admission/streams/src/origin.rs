//! The inner hop: the judge.

use std::rc::Rc;
use std::time::SystemTime;

use cache_admission::judge::{Judged, Ruling, Trial, Watch};
use cache_admission::marks;
use filter_host::headers::{self, Map, apply};
use filter_host::log::{self, Level};
use filter_host::stream::{Action, HttpStream};
use filter_host::{HostError, body, reply};
use http_semantics::Reply;

use crate::worker::Worker;

#[derive(Debug)]
pub(crate) struct OriginStream {
    worker: Rc<Worker>,
    object_bytes: u64,
    trial: Option<Trial>,
    watch: Option<Watch>,
}

impl OriginStream {
    pub(crate) fn new(worker: Rc<Worker>, object_bytes: u64) -> Self {
        Self { worker, object_bytes, trial: None, watch: None }
    }

    fn request(&mut self) -> Result<(), HostError> {
        let pairs = headers::list(Map::Request)?;
        let (trial, edits) = Trial::of(&pairs.iter().collect());
        self.trial = trial;
        apply(Map::Request, &edits)
    }

    fn response(&mut self, trial: &Trial) -> Result<Action, HostError> {
        let worker = &self.worker;
        let pairs = headers::list(Map::Response)?;
        let Ok(mut budget) = worker.budget.try_borrow_mut() else { return Ok(cut(worker, Ruling::Busy)) };
        match trial.judge(&pairs.iter().collect(), self.object_bytes, &mut budget, SystemTime::now()) {
            Judged::Pass { edits, ruling, watch } => {
                apply(Map::Response, &edits)?;
                worker.counters.judged(ruling);
                self.watch = watch.then(Watch::default);
                Ok(Action::Continue)
            }
            Judged::Cut(ruling) => Ok(cut(worker, ruling)),
        }
    }
}

/// Replaces a response by a short one, at which the hop in front repeats the request past the cache. If the short one
/// cannot be sent, the response passes: a page is worth more than memory.
fn cut(worker: &Worker, ruling: Ruling) -> Action {
    worker.counters.judged(ruling);
    let fields: [(&str, &[u8]); 2] = [(marks::VERDICT, b"cut"), ("cache-control", b"no-store")];
    match reply::send(&Reply::new(503, &fields, []), "longhaul_not_for_the_cache") {
        Ok(()) => Action::Pause,
        Err(error) => {
            log::write(Level::Error, &format!("cache-admission: cannot replace an uncacheable response: {error}"));
            Action::Continue
        }
    }
}

impl HttpStream for OriginStream {
    fn request_headers(&mut self, _: bool) -> Action {
        if let Err(error) = self.request() {
            log::write(Level::Warn, &format!("cache-admission: cannot judge by the request headers: {error}"));
        }
        Action::Continue
    }

    fn response_headers(&mut self, _: bool) -> Action {
        let Some(trial) = self.trial.take() else { return Action::Continue };
        self.response(&trial).unwrap_or_else(|error| {
            log::write(Level::Warn, &format!("cache-admission: cannot judge by the response headers: {error}"));
            cut(&self.worker, Ruling::Cut)
        })
    }

    fn response_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        let Some(watch) = &mut self.watch else { return Action::Continue };
        let Ok(mut budget) = self.worker.budget.try_borrow_mut() else { return Action::Continue };
        if !watch.piece(size, self.object_bytes, &mut budget, SystemTime::now()) {
            self.worker.counters.broken_off();
            if let Err(error) = body::break_off() {
                log::write(Level::Error, &format!("cache-admission: cannot break off a body for the cache: {error}"));
            }
            self.watch = None;
        } else if end_of_stream {
            self.watch = None;
        }
        Action::Continue
    }
}
