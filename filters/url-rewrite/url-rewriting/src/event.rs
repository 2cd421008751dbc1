//! A URL of a body: how it is mentioned, and what observers learn of it.

use url_mapping::{Base, Outcome, Reason, Use};

use crate::places::Place;

/// One URL of a body and its outcome.
#[derive(Debug)]
pub struct UrlEvent<'e> {
    /// Where it stands: element and attribute.
    pub place: &'static Place,
    /// What it says, decoded; empty where it was not read.
    pub url: &'e str,
    /// Its outcome.
    pub outcome: &'e Outcome,
    /// What its place makes of the object; none where a browser fetches none, or in a way of its own.
    pub fetch: Option<Fetch>,
    /// What it is relative to, where it stands.
    pub base: &'e Base,
    /// Where its value begins, in bytes from the start of the body.
    pub offset: usize,
}

/// How a browser comes to fetch an object, as far as its place in the page says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetch {
    /// What it is used as.
    pub usage: Use,
    /// It is fetched as soon as its place is read, whatever the window and the reader do: not one candidate of several, not
    /// lazily, not for another medium.
    pub at_once: bool,
    /// It is fetched with CORS: the answer is for the page's origin.
    pub cors: bool,
}

impl From<Ask> for Fetch {
    fn from(Ask { usage, at_once, cors, .. }: Ask) -> Self {
        Self { usage, at_once, cors }
    }
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

/// What is asked of the mapping for one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ask {
    /// What the object is used as.
    pub(crate) usage: Use,
    /// Fetched with CORS and without credentials: it can move if its server consents to the page's origin already, that
    /// is, if it is not the page's own.
    pub(crate) cors: bool,
    /// See [`Fetch::at_once`].
    pub(crate) at_once: bool,
    /// It only fetches ahead what something else uses; see [`Preloads`].
    pub(crate) is_preload: bool,
}

impl Ask {
    /// The same, where browsers with scripts do not look (`noscript`), or nobody does yet (`template`).
    pub(crate) fn out_of_sight(self, is_out_of_sight: bool) -> Self {
        Self { at_once: self.at_once && !is_out_of_sight, ..self }
    }
}

/// One URL that was found, and what its place says about it.
#[derive(Debug)]
pub(crate) struct Mention<'m> {
    pub(crate) place: &'static Place,
    /// Where it stands in the body.
    pub(crate) offset: usize,
    /// What it says, decoded.
    pub(crate) url: &'m str,
    /// What to ask, or why there is nothing to ask.
    pub(crate) verdict: Result<Ask, Reason>,
}

impl Mention<'_> {
    /// What its place makes of the object.
    pub(crate) fn fetch(&self) -> Option<Fetch> {
        self.verdict.ok().map(Into::into)
    }
}
