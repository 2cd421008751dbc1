//! Requests of browsers at the remote.

use crate::encoding::Encoding;
use crate::worker::{Worker, now_ms, send};
use filter_host::headers::{self, Map};
use filter_host::shared::ProxyBoard;
use filter_host::stream::{Action, HttpStream};
use filter_host::{HostError, property};
use http_semantics::authority::without_port;
use page_flights::remote::Verdict;
use page_flights::{FLIGHT_FIELD, RemoteEnd, VALID_FIELD};
use std::rc::Rc;

/// A stream of a client.
#[derive(Debug)]
pub(crate) struct RemoteStream {
    id: u32,
    worker: Rc<Worker<RemoteEnd>>,
    encoding: Encoding,
}

impl RemoteStream {
    pub(crate) fn new(id: u32, worker: Rc<Worker<RemoteEnd>>) -> Self {
        Self { id, worker, encoding: Encoding::default() }
    }

    fn request(&mut self, has_body: bool) -> Result<Action, HostError> {
        let pairs = headers::list(Map::Request)?;
        self.encoding = Encoding::of(&pairs, &self.worker.windows);
        if self.worker.deltas {
            self.encoding.allow_delta(&pairs, has_body);
        }
        self.encoding.announce()?;
        let address = property::get(&["source", "address"])?.unwrap_or_default();
        let client = without_port(&address);
        let Ok(mut end) = self.worker.end.try_borrow_mut() else { return Ok(Action::Continue) };
        let pairs: Vec<_> = pairs.iter().collect();
        headers::apply(Map::Request, end.caches().as_slice())?;
        match end.request(&ProxyBoard, self.id, client, &pairs, now_ms()) {
            Verdict::Pass => Ok(Action::Continue),
            Verdict::PassWithout => headers::remove(Map::Request, FLIGHT_FIELD).map(|()| Action::Continue),
            Verdict::Open(field) => {
                headers::set(Map::Request, FLIGHT_FIELD, field.as_bytes()).map(|()| Action::Continue)
            }
            Verdict::Answer(answer) => send(&answer).map(|()| Action::Pause),
            Verdict::Hold => Ok(Action::Pause),
            Verdict::Valid(lines) => {
                headers::set(Map::Request, VALID_FIELD, lines.as_bytes()).map(|()| Action::Continue)
            }
        }
    }
}

impl HttpStream for RemoteStream {
    fn request_headers(&mut self, end_of_stream: bool) -> Action {
        let outcome = self.request(!end_of_stream);
        self.worker.decided(self.id, outcome)
    }

    fn response_headers(&mut self, _: bool) -> Action {
        self.encoding.response(&self.worker)
    }

    fn response_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        self.encoding.body(size, end_of_stream, &self.worker.counters);
        Action::Continue
    }

    fn response_trailers(&mut self) -> Action {
        self.encoding.trailers(&self.worker.counters);
        Action::Continue
    }

    fn callout_ended(&mut self, header_count: usize, body_bytes: usize) {
        self.encoding.asked_again(header_count, body_bytes, &self.worker.counters);
    }
}

impl Drop for RemoteStream {
    fn drop(&mut self) {
        self.worker.on_gone(self.id);
    }
}
