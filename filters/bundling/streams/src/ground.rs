//! Pages and slots at the ground.

use crate::delta::Delta;
use crate::encoding::Encoding;
use crate::worker::{Worker, now_ms, send};
use filter_host::HostError;
use filter_host::body::{self, Buffer};
use filter_host::headers::{self, Map};
use filter_host::log::{self, Level};
use filter_host::shared::ProxyBoard;
use filter_host::stream::{Action, HttpStream};
use page_flights::ground::Verdict;
use page_flights::{CACHES_FIELD, FLIGHT_FIELD, GroundEnd};
use std::rc::Rc;

/// A stream from the remote.
#[derive(Debug)]
pub(crate) struct GroundStream {
    id: u32,
    worker: Rc<Worker<GroundEnd>>,
    /// True if the end reads the head of its response.
    is_followed: bool,
    /// True if the end reads its body.
    is_read: bool,
    encoding: Encoding,
    delta: Delta,
}

impl GroundStream {
    pub(crate) fn new(id: u32, worker: Rc<Worker<GroundEnd>>) -> Self {
        Self { id, worker, is_followed: false, is_read: false, encoding: Encoding::default(), delta: Delta::default() }
    }

    fn request(&mut self) -> Result<Action, HostError> {
        let pairs = headers::list(Map::Request)?;
        self.encoding = Encoding::of(&pairs, &self.worker.windows);
        if self.worker.deltas {
            self.delta = Delta::of(&pairs, &self.worker.windows);
        }
        Delta::strip()?;
        let Ok(mut end) = self.worker.end.try_borrow_mut() else { return Ok(Action::Continue) };
        match end.request(&ProxyBoard, self.id, &pairs.iter().collect::<Vec<_>>(), now_ms()) {
            Verdict::Pass => Ok(Action::Continue),
            Verdict::Read => {
                self.is_followed = true;
                headers::remove(Map::Request, FLIGHT_FIELD)?;
                headers::remove(Map::Request, CACHES_FIELD).map(|()| Action::Continue)
            }
            Verdict::Answer(answer) => send(&answer).map(|()| Action::Pause),
            Verdict::Hold => Ok(Action::Pause),
        }
    }

    fn response(&mut self, end_of_stream: bool) -> Result<(), HostError> {
        let pairs = headers::list(Map::Response)?;
        let Ok(mut end) = self.worker.end.try_borrow_mut() else { return Ok(()) };
        self.is_read = end.response(&ProxyBoard, self.id, &pairs.iter().collect::<Vec<_>>());
        if end_of_stream {
            end.body(self.id, &[], true, now_ms());
        }
        Ok(())
    }

    /// Reads a piece of a page's body, behind the bytes that the proxy holds, and encodes it. Returns true if the proxy
    /// must hold all of them.
    fn page_body(&mut self, size: usize, is_end: bool) -> bool {
        let chunk = body::read(Buffer::ResponseBody, size).unwrap_or_default();
        let end = &self.worker.end;
        let held = end.try_borrow().map_or(0, |end| end.held_bytes(self.id));
        let new = chunk.get(held..).unwrap_or_default();
        let may_hold = body::may_hold();
        let waits = self.is_read
            && end.try_borrow_mut().is_ok_and(|mut end| {
                let wants = end.body(self.id, new, is_end, now_ms());
                if wants && !may_hold {
                    end.cannot_hold(self.id);
                }
                wants && may_hold
            });
        let holds = self.delta.body(&chunk, held, is_end, &self.worker.counters);
        if let Ok(mut end) = end.try_borrow_mut() {
            end.now_holds(self.id, holds);
        }
        self.worker.settle(self.id);
        waits
    }
}

impl HttpStream for GroundStream {
    fn request_headers(&mut self, _: bool) -> Action {
        let outcome = self.request();
        self.worker.decided(self.id, outcome)
    }

    fn response_headers(&mut self, end_of_stream: bool) -> Action {
        if self.is_followed {
            if let Err(error) = self.response(end_of_stream) {
                log::write(Level::Warn, &format!("bundling: cannot read a response: {error}"));
            }
            self.worker.settle(self.id);
        }
        self.delta.response(!end_of_stream, &self.worker.counters);
        self.encoding.response(&self.worker)
    }

    fn response_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        if (self.is_read || self.delta.reads_body()) && self.page_body(size, end_of_stream) {
            return Action::Pause;
        }
        self.encoding.body(size, end_of_stream, &self.worker.counters);
        Action::Continue
    }

    fn response_trailers(&mut self) -> Action {
        self.delta.trailers(&self.worker.counters);
        self.encoding.trailers(&self.worker.counters);
        Action::Continue
    }
}

impl Drop for GroundStream {
    fn drop(&mut self) {
        self.worker.on_gone(self.id);
    }
}
