//! The body of one response, decoded for its client.

use std::time::Duration;

use crate::counters::Counters;
use crate::worker::{self, Worker};
use filter_host::HostError;
use filter_host::body::{self, Buffer};
use filter_host::callout;
use filter_host::headers::{self, Map, Pairs};
use filter_host::log::{self, Level};
use filter_host::shared::ProxyBoard;
use filter_host::stream::Action;
use http_semantics::Fields;
use page_flights::End;
use pipe_encoding::delta::RequestFields;
use pipe_encoding::{Body, Exchange, Response, Windows, limits};

/// The exchange of one stream. None if its response passes as it comes.
#[derive(Debug, Default)]
pub(crate) struct Encoding(Option<Exchange>);

impl Encoding {
    /// Reads the request.
    pub(crate) fn of(request: &Pairs, windows: &Windows) -> Self {
        Self(Exchange::of(&request.iter().collect::<Fields<'_>>(), windows))
    }

    /// Lets the response be a delta.
    pub(crate) fn allow_delta(&mut self, request: &Pairs, has_body: bool) {
        if let Some(exchange) = &mut self.0 {
            exchange.allow_delta(&ProxyBoard, &request.iter().collect(), has_body);
        }
    }

    /// Adds the fields that say what this end reads.
    pub(crate) fn announce(&self) -> Result<(), HostError> {
        self.0.as_ref().map_or(Ok(()), |exchange| headers::apply(Map::Request, &exchange.request_edits()))
    }

    /// Reads the headers of the response, and changes them.
    pub(crate) fn response<E: End>(&mut self, worker: &Worker<E>) -> Action {
        let Some(exchange) = self.0.as_mut().filter(|exchange| exchange.changes_responses()) else {
            return Action::Continue;
        };
        let treated = headers::list(Map::Response).map(|pairs| exchange.response(&ProxyBoard, &pairs.iter().collect()));
        worker.counters.add_events(exchange.take_events());
        let edited = match treated {
            Ok(Response::Edit(edits)) => headers::apply(Map::Response, &edits),
            Ok(Response::AskAgain(request)) => return self.ask_again(&request, worker),
            Err(error) => Err(error),
        };
        if let Err(error) = edited {
            log::write(Level::Warn, &format!("bundling: cannot change the fields of a response: {error}"));
        }
        Action::Continue
    }

    fn ask_again<E: End>(&mut self, request: &RequestFields, worker: &Worker<E>) -> Action {
        let fields: Vec<(&str, &str)> = request.iter().map(|(name, value)| (&**name, &**value)).collect();
        if let Err(error) = callout::send(&worker.cluster, &fields, Duration::from_millis(limits::AGAIN_MS)) {
            log::write(Level::Warn, &format!("bundling: cannot request a page again: {error}"));
            self.answer(None, &worker.counters);
        }
        Action::Pause
    }

    /// Sends the response to a page that was requested again.
    pub(crate) fn asked_again(&mut self, header_count: usize, body_bytes: usize, counters: &Counters) {
        let came = worker::read(header_count, body_bytes).ok().flatten();
        self.answer(came.as_ref(), counters);
    }

    fn answer(&mut self, came: Option<&(Pairs, Vec<u8>)>, counters: &Counters) {
        let Some(exchange) = &mut self.0 else { return };
        let fields = came.map(|(headers, body)| (headers.iter().collect::<Fields<'_>>(), &**body));
        let whole = exchange.asked_again(fields.as_ref().map(|(fields, body)| (fields, *body)));
        counters.add_events(exchange.take_events());
        if let Err(error) = worker::send(&whole) {
            log::write(Level::Warn, &format!("bundling: a page that was requested again is lost: {error}"));
        }
    }

    /// Replaces a piece of the body.
    pub(crate) fn body(&mut self, size: usize, is_end: bool, counters: &Counters) {
        let Some(exchange) = self.0.as_mut().filter(|exchange| exchange.reads_body()) else { return };
        let done = body::read(Buffer::ResponseBody, size)
            .and_then(|bytes| replace(size, exchange.body(&ProxyBoard, &bytes, is_end)));
        counters.add_events(exchange.take_events());
        if let Err(error) = done.or_else(|error| body::break_off().and(Err::<(), _>(error))) {
            log::write(Level::Warn, &format!("bundling: a response ends early: {error}"));
        }
    }

    /// Ends the body at its trailers.
    pub(crate) fn trailers(&mut self, counters: &Counters) {
        let Some(exchange) = self.0.as_mut().filter(|exchange| exchange.reads_body()) else { return };
        let outcome = exchange.body(&ProxyBoard, &[], true);
        counters.add_events(exchange.take_events());
        if outcome == Body::BreakOff
            && let Err(error) = body::break_off()
        {
            log::write(Level::Warn, &format!("bundling: a truncated response looks complete: {error}"));
        }
    }
}

/// Treats the `size` bytes of a body callback.
pub(crate) fn replace(size: usize, treatment: Body) -> Result<(), HostError> {
    match treatment {
        Body::Pass => Ok(()),
        Body::Replace(bytes) => body::replace(Buffer::ResponseBody, size, &bytes),
        Body::BreakOff => body::break_off(),
    }
}
