//! A page at the ground, encoded as a delta.

use crate::counters::Counters;
use crate::encoding::replace;
use filter_host::HostError;
use filter_host::body;
use filter_host::headers::{self, Map, Pairs};
use filter_host::log::{self, Level};
use filter_host::shared::ProxyBoard;
use http_semantics::Fields;
use pipe_encoding::delta::Outgoing;
use pipe_encoding::{Body, Windows};

/// The page of one stream. None if the stream carries no page, or if its remote reads no deltas.
#[derive(Debug, Default)]
pub(crate) struct Delta(Option<Outgoing>);

impl Delta {
    /// Reads the request.
    pub(crate) fn of(request: &Pairs, windows: &Windows) -> Self {
        Self(Outgoing::of(&request.iter().collect::<Fields<'_>>(), windows))
    }

    /// Removes the names of bases from a request, for origins and for other ends.
    pub(crate) fn strip() -> Result<(), HostError> {
        headers::apply(Map::Request, &[Outgoing::request_edit()])
    }

    /// Reads the headers of the response, and changes them.
    pub(crate) fn response(&mut self, has_body: bool, counters: &Counters) {
        let Some(page) = &mut self.0 else { return };
        let edited = headers::list(Map::Response).and_then(|pairs| {
            let edits = page.response(&ProxyBoard, &pairs.iter().collect(), has_body);
            headers::apply(Map::Response, &edits)
        });
        counters.add_events(page.take_events());
        if let Err(error) = edited {
            log::write(Level::Warn, &format!("bundling: cannot say how a page is encoded: {error}"));
            self.0 = None;
        }
    }

    /// Returns true if [`Delta::body`] must see the body.
    pub(crate) fn reads_body(&self) -> bool {
        self.0.as_ref().is_some_and(Outgoing::reads_body)
    }

    /// Replaces the part of `bytes` behind the first `held`, which have been replaced before. Returns the number of bytes
    /// that there are now.
    pub(crate) fn body(&mut self, bytes: &[u8], held: usize, is_end: bool, counters: &Counters) -> usize {
        let Some(page) = &mut self.0 else { return bytes.len() };
        let (seen, new) = bytes.split_at_checked(held).unwrap_or((bytes, &[]));
        let treatment = match page.body(&ProxyBoard, new, is_end) {
            Body::Replace(encoded) => Body::Replace([seen, &encoded].concat()),
            other => other,
        };
        counters.add_events(page.take_events());
        let now = if let Body::Replace(all) = &treatment { all.len() } else { bytes.len() };
        if let Err(error) = replace(bytes.len(), treatment).or_else(|error| body::break_off().and(Err(error))) {
            log::write(Level::Warn, &format!("bundling: a page ends early: {error}"));
        }
        now
    }

    /// Ends the body at its trailers.
    pub(crate) fn trailers(&mut self, counters: &Counters) {
        let Some(page) = &mut self.0 else { return };
        let treatment = page.trailers(&ProxyBoard);
        counters.add_events(page.take_events());
        if let Err(error) = replace(0, treatment) {
            log::write(Level::Warn, &format!("bundling: a page looks complete: {error}"));
        }
    }
}
