//! Header callbacks. Each reads the headers, makes one call into the codec and applies its treatment. The filter ignores
//! bodies and trailers.

use crate::counters::Work;
use crate::shared::Shared;
use filter_host::headers::{self, Map, Pairs};
use filter_host::log::{self, Level};
use filter_host::stream::{Action, HttpStream};
use filter_host::{HostError, clock, property, reply};
use header_codec::{GroundEnd, GroundStream, RemoteEnd, RemoteRequest, RemoteStream, Treatment, is_of_a_client};
use header_compression_config::ClientKey;
use http_semantics::Reply;
use http_semantics::authority::without_port;
use std::rc::Rc;
use std::time::Duration;

/// A stream at the remote. The filter runs in the pipe's cluster, so there is one stream for each attempt.
#[derive(Debug)]
pub(crate) struct RemoteHeaders {
    shared: Rc<Shared<RemoteEnd>>,
    stream: RemoteStream,
}

impl RemoteHeaders {
    pub(crate) fn new(shared: Rc<Shared<RemoteEnd>>) -> Self {
        Self { shared, stream: RemoteStream::default() }
    }

    /// Returns the connection of the pipe that carries the stream, once there is one.
    fn pipe() -> Option<Vec<u8>> {
        property::get(&["upstream", "local_address"]).ok().flatten()
    }

    fn client(&self) -> Vec<u8> {
        let path: &[&str] = match self.shared.client {
            ClientKey::Address => &["source", "address"],
            ClientKey::Connection => &["connection", "id"],
        };
        let value = property::get(path).ok().flatten().unwrap_or_default();
        match self.shared.client {
            ClientKey::Address => without_port(&value).to_vec(),
            ClientKey::Connection => value,
        }
    }
}

impl HttpStream for RemoteHeaders {
    fn request_headers(&mut self, end_of_stream: bool) -> Action {
        let (Some(pairs), Ok(mut end)) = (read(Map::Request), self.shared.end.try_borrow_mut()) else {
            return Action::Continue;
        };
        let fields: Vec<_> = pairs.iter().collect();
        let client = if is_of_a_client(&fields) { self.client() } else { Vec::new() };
        let pipe = Self::pipe();
        let start = now();
        let (treatment, stream) = end.request(&RemoteRequest {
            client: &client,
            pipe: pipe.as_deref(),
            headers: &fields,
            body: !end_of_stream,
            now: start,
        });
        self.shared.counters.add(&mut end.counts, Work::Encode, now().saturating_sub(start));
        let (action, applied) = apply(Map::Request, treatment);
        if applied {
            self.stream = stream;
        }
        action
    }

    fn response_headers(&mut self, _: bool) -> Action {
        let stream = std::mem::take(&mut self.stream);
        let (Some(pairs), Ok(mut end)) = (read(Map::Response), self.shared.end.try_borrow_mut()) else {
            return Action::Continue;
        };
        let pipe = Self::pipe().unwrap_or_default();
        let start = now();
        let treatment = end.response(stream, &pipe, &pairs.iter().collect::<Vec<_>>(), start);
        self.shared.counters.add(&mut end.counts, Work::Decode, now().saturating_sub(start));
        apply(Map::Response, treatment).0
    }
}

/// A stream at the ground.
#[derive(Debug)]
pub(crate) struct GroundHeaders {
    shared: Rc<Shared<GroundEnd>>,
    stream: GroundStream,
}

impl GroundHeaders {
    pub(crate) fn new(shared: Rc<Shared<GroundEnd>>) -> Self {
        Self { shared, stream: GroundStream::default() }
    }
}

impl HttpStream for GroundHeaders {
    fn request_headers(&mut self, _: bool) -> Action {
        let (Some(pairs), Ok(mut end)) = (read(Map::Request), self.shared.end.try_borrow_mut()) else {
            return Action::Continue;
        };
        let pipe = property::get(&["connection", "id"]).ok().flatten().unwrap_or_default();
        let start = now();
        let (treatment, stream) = end.request(&pipe, &pairs.iter().collect::<Vec<_>>());
        self.shared.counters.add(&mut end.counts, Work::Decode, now().saturating_sub(start));
        self.stream = stream;
        let (action, applied) = apply(Map::Request, treatment);
        if applied {
            return action;
        }
        // The map still holds the compressed request, which no filter or server behind this one may see.
        self.stream = GroundStream::Refused;
        apply(Map::Request, Treatment::Reply(Reply::empty(500))).0
    }

    fn response_headers(&mut self, _: bool) -> Action {
        let stream = std::mem::take(&mut self.stream);
        let (Some(pairs), Ok(mut end)) = (read(Map::Response), self.shared.end.try_borrow_mut()) else {
            return Action::Continue;
        };
        let start = now();
        let treatment = end.response(stream, &pairs.iter().collect::<Vec<_>>());
        self.shared.counters.add(&mut end.counts, Work::Encode, now().saturating_sub(start));
        apply(Map::Response, treatment).0
    }
}

/// Returns the time on the proxy's monotonic clock.
fn now() -> Duration {
    clock::monotonic().unwrap_or_default()
}

/// Reads all headers. Returns `None` if the host refuses, and then the filter leaves them unchanged.
fn read(map: Map) -> Option<Pairs> {
    headers::list(map).inspect_err(|error| complain(map, *error)).ok()
}

/// Applies a treatment. Also returns true if the host accepted it.
fn apply(map: Map, treatment: Treatment) -> (Action, bool) {
    let outcome = match treatment {
        Treatment::Keep => return (Action::Continue, true),
        Treatment::Replace(fields) => {
            let fields: Vec<(&[u8], &[u8])> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
            headers::replace_all(map, &fields)
        }
        Treatment::Reply(answer) => {
            let sent = reply::send(&answer, "longhaul_header_compression");
            if sent.is_ok() {
                return (Action::Pause, true);
            }
            sent
        }
    };
    let applied = outcome.inspect_err(|error| complain(map, *error)).is_ok();
    (Action::Continue, applied)
}

fn complain(map: Map, error: HostError) {
    log::write(Level::Warn, &format!("header-compression: the proxy refused the headers of a {map:?}: {error}"));
}
