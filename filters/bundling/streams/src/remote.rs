//! Requests of browsers at the remote.

use crate::encoding::Encoding;
use crate::worker::{Worker, now_ms, send};
use filter_host::headers::{self, Map};
use filter_host::log::{self, Level};
use filter_host::shared::ProxyBoard;
use filter_host::stream::{Action, HttpStream};
use filter_host::{HostError, property};
use http_semantics::Fields;
use http_semantics::authority::without_port;
use object_bypass::Way;
use object_config::PRIVATE;
use page_flights::remote::Verdict;
use page_flights::{FLIGHT_FIELD, RemoteEnd, VALID_FIELD};
use std::rc::Rc;

/// A stream of a client.
#[derive(Debug)]
pub(crate) struct RemoteStream {
    id: u32,
    worker: Rc<Worker<RemoteEnd>>,
    encoding: Encoding,
    /// The way of the request, if it may bypass the cache.
    way: Option<Way<u64>>,
}

impl RemoteStream {
    pub(crate) fn new(id: u32, worker: Rc<Worker<RemoteEnd>>) -> Self {
        Self { id, worker, encoding: Encoding::default(), way: None }
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
        headers::apply(Map::Request, end.caches())?;
        let verdict = end.request(&ProxyBoard, self.id, client, &pairs, now_ms());
        drop(end);
        match verdict {
            Verdict::Pass => self.pass(&pairs.as_slice().into()).map(|()| Action::Continue),
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

    /// Lets a request pass, to the cache or past it.
    fn pass(&mut self, request: &Fields<'_>) -> Result<(), HostError> {
        let Some(bypass) = &self.worker.bypass else { return Ok(()) };
        let [scheme, authority, path] =
            [":scheme", ":authority", ":path"].map(|name| request.get(name).unwrap_or_default());
        let way = bypass.request(object_bypass::key(scheme, authority, path), request.has("cookie"))?;
        match way {
            Way::Past => self.worker.counters.bypassed(),
            Way::Through(_) => {}
        }
        self.way = Some(way);
        Ok(())
    }

    /// Learns from a response whether the cache stores it.
    fn learn(&mut self) -> Result<(), HostError> {
        let (Some(bypass), Some(way)) = (&self.worker.bypass, self.way.take()) else { return Ok(()) };
        let pairs = headers::list(Map::Response)?;
        bypass.response(way, pairs.iter().collect::<Fields<'_>>().get(PRIVATE))
    }
}

impl HttpStream for RemoteStream {
    fn request_headers(&mut self, end_of_stream: bool) -> Action {
        let outcome = self.request(!end_of_stream);
        self.worker.decided(self.id, outcome)
    }

    fn response_headers(&mut self, _: bool) -> Action {
        if let Err(error) = self.learn() {
            log::write(Level::Warn, &format!("bundling: cannot say how the cache served a request: {error}"));
        }
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
