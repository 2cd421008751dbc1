//! Pages and slots at the ground.

use crate::encoding::Encoding;
use crate::worker::{Worker, now_ms, send};
use filter_host::HostError;
use filter_host::body::{self, Buffer};
use filter_host::headers::{self, Map};
use filter_host::log::{self, Level};
use filter_host::shared::ProxyBoard;
use page_flights::ground::Verdict;
use page_flights::{FLIGHT_FIELD, GroundEnd};
use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;
use std::rc::Rc;

/// A stream from the remote.
#[derive(Debug)]
pub(crate) struct GroundStream {
    id: u32,
    worker: Rc<Worker<GroundEnd>>,
    /// True if its request opened a flight.
    is_page: bool,
    /// True if the end reads its body.
    is_read: bool,
    encoding: Encoding,
}

impl GroundStream {
    pub(crate) fn new(id: u32, worker: Rc<Worker<GroundEnd>>) -> Self {
        Self { id, worker, is_page: false, is_read: false, encoding: Encoding::default() }
    }

    fn request(&mut self) -> Result<Action, HostError> {
        let pairs = headers::list(Map::Request)?;
        self.encoding = Encoding::of(&pairs, &self.worker.windows);
        let Ok(mut end) = self.worker.end.try_borrow_mut() else { return Ok(Action::Continue) };
        match end.request(&ProxyBoard, self.id, &pairs.iter().collect::<Vec<_>>(), now_ms()) {
            Verdict::Pass => Ok(Action::Continue),
            Verdict::Page => {
                self.is_page = true;
                headers::remove(Map::Request, FLIGHT_FIELD).map(|()| Action::Continue)
            }
            Verdict::Answer(answer) => send(&answer).map(|()| Action::Pause),
            Verdict::Hold => Ok(Action::Pause),
        }
    }

    fn response(&mut self, end_of_stream: bool) -> Result<(), HostError> {
        let pairs = headers::list(Map::Response)?;
        let Ok(mut end) = self.worker.end.try_borrow_mut() else { return Ok(()) };
        self.is_read = end.response(self.id, &pairs.iter().collect::<Vec<_>>());
        if end_of_stream {
            end.body(self.id, &[], true, now_ms());
        }
        Ok(())
    }
}

impl Context for GroundStream {}

impl HttpContext for GroundStream {
    fn on_http_request_headers(&mut self, _: usize, _: bool) -> Action {
        let outcome = self.request();
        self.worker.decided(self.id, outcome)
    }

    fn on_http_response_headers(&mut self, _: usize, end_of_stream: bool) -> Action {
        if self.is_page {
            if let Err(error) = self.response(end_of_stream) {
                log::write(Level::Warn, &format!("bundling: cannot read a page: {error}"));
            }
            self.worker.settle(self.id);
        }
        self.encoding.response(&self.worker.counters);
        Action::Continue
    }

    fn on_http_response_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        if self.is_read {
            let chunk = body::read(Buffer::ResponseBody, size).unwrap_or_default();
            let waits = self
                .worker
                .end
                .try_borrow_mut()
                .is_ok_and(|mut end| end.body(self.id, &chunk, end_of_stream, now_ms()));
            self.worker.settle(self.id);
            if waits {
                return Action::Pause;
            }
        }
        self.encoding.body(size, end_of_stream, &self.worker.counters);
        Action::Continue
    }

    fn on_http_response_trailers(&mut self, _: usize) -> Action {
        self.encoding.trailers(&self.worker.counters);
        Action::Continue
    }
}

impl Drop for GroundStream {
    fn drop(&mut self) {
        self.worker.on_gone(self.id);
    }
}
