//! The body of one response, decompressed for its client.

use crate::counters::Counters;
use filter_host::HostError;
use filter_host::body::{self, Buffer};
use filter_host::headers::{self, Map, Pairs};
use filter_host::log::{self, Level};
use http_semantics::Fields;
use pipe_encoding::{Body, Edit, Exchange, Windows};

/// The exchange of one stream. None if its response passes as it comes.
#[derive(Debug, Default)]
pub(crate) struct Encoding(Option<Exchange>);

impl Encoding {
    /// Reads the request.
    pub(crate) fn of(request: &Pairs, windows: &Windows) -> Self {
        Self(Exchange::of(&request.iter().collect::<Fields<'_>>(), windows))
    }

    /// Adds the field that makes the ground compress with br.
    pub(crate) fn announce(&self) -> Result<(), HostError> {
        self.0.iter().try_for_each(|_| apply(Map::Request, &Exchange::request_edit()))
    }

    /// Reads the headers of the response, and changes them.
    pub(crate) fn response(&mut self, counters: &Counters) {
        let Some(exchange) = self.0.as_mut().filter(|exchange| exchange.changes_responses()) else { return };
        let edited = headers::list(Map::Response).and_then(|pairs| {
            let edits = exchange.response(&pairs.iter().collect());
            edits.iter().try_for_each(|edit| apply(Map::Response, edit))
        });
        counters.add_events(exchange.take_events());
        if let Err(error) = edited {
            log::write(Level::Warn, &format!("bundling: cannot change the fields of a response: {error}"));
        }
    }

    /// Replaces a piece of the body.
    pub(crate) fn body(&mut self, size: usize, is_end: bool, counters: &Counters) {
        let Some(exchange) = self.0.as_mut().filter(|exchange| exchange.has_decoder()) else { return };
        let done = body::read(Buffer::ResponseBody, size).and_then(|bytes| match exchange.body(&bytes, is_end) {
            Body::Pass => Ok(()),
            Body::Replace(plain) => body::replace(Buffer::ResponseBody, size, &plain),
            Body::BreakOff => body::break_off(),
        });
        counters.add_events(exchange.take_events());
        if let Err(error) = done.or_else(|error| body::break_off().and(Err::<(), _>(error))) {
            log::write(Level::Warn, &format!("bundling: a response ends early: {error}"));
        }
    }

    /// Ends the body at its trailers.
    pub(crate) fn trailers(&mut self, counters: &Counters) {
        let Some(exchange) = self.0.as_mut().filter(|exchange| exchange.has_decoder()) else { return };
        let outcome = exchange.body(&[], true);
        counters.add_events(exchange.take_events());
        if outcome == Body::BreakOff
            && let Err(error) = body::break_off()
        {
            log::write(Level::Warn, &format!("bundling: a truncated response looks complete: {error}"));
        }
    }
}

fn apply(map: Map, edit: &Edit) -> Result<(), HostError> {
    match edit {
        Edit::Set(name, value) => headers::set(map, name, value),
        Edit::Remove(name) => headers::remove(map, name),
    }
}
