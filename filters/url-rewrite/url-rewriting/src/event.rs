//! The observer of URLs, and the facts that it receives of each.

use page_scanner::{LoadRequest, Place};
use url_mapping::Outcome;

/// One URL of a body and its outcome.
#[derive(Debug)]
pub struct UrlEvent<'e> {
    /// The element and attribute that hold it.
    pub place: &'static Place,
    /// The URL as written, decoded. Empty if it was not read.
    pub url: &'e str,
    /// The decision.
    pub outcome: &'e Outcome,
    /// How a browser loads the object. `None` if it loads none, or under conditions that rule out a move.
    pub load: Option<LoadRequest>,
    /// The position of its value, in bytes from the start of the body.
    pub offset: usize,
}

/// Receives every URL, in the order of the body.
pub trait Observer {
    /// Receives one decided URL.
    fn url(&mut self, event: &UrlEvent<'_>);
}

impl<F: FnMut(&UrlEvent<'_>)> Observer for F {
    fn url(&mut self, event: &UrlEvent<'_>) {
        self(event);
    }
}
