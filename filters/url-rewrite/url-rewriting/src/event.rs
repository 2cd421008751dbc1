//! What observers learn of a URL.

use page_scanner::{LoadRequest, Place};
use url_mapping::{Base, Outcome};

/// One URL of a body and its outcome.
#[derive(Debug)]
pub struct UrlEvent<'e> {
    /// Where it stands: element and attribute.
    pub place: &'static Place,
    /// What it says, decoded; empty where it was not read.
    pub url: &'e str,
    /// Its outcome.
    pub outcome: &'e Outcome,
    /// How a browser loads the object; none where it loads none, or in a way of its own.
    pub load: Option<LoadRequest>,
    /// What it is relative to, where it stands.
    pub base: &'e Base,
    /// Where its value begins, in bytes from the start of the body.
    pub offset: usize,
}

/// Receives every URL, in the order of the body.
pub trait Observer {
    /// One URL was found and decided.
    fn url(&mut self, event: &UrlEvent<'_>);
}

impl<F: FnMut(&UrlEvent<'_>)> Observer for F {
    fn url(&mut self, event: &UrlEvent<'_>) {
        self(event);
    }
}
