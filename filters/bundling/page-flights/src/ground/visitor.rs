//! The requests that the far end makes for a page's objects, on behalf of its visitor.

use http_semantics::Fields;
use http_semantics::object_request::{Browser, Object};
use url_mapping::Use;

use super::flight::Fetch;
use super::lessons::Who;
use crate::digest::{authority, root};

/// The visitor who asked for the page.
#[derive(Debug, Clone)]
pub(super) struct Visitor {
    pub(super) url: String,
    pub(super) who: Who,
    /// `Accept-Encoding`.
    pub(super) accepted: Vec<u8>,
    browser: Browser,
    /// The page says something about referrers: then none is sent.
    pub(super) no_referer: bool,
}

impl Visitor {
    /// By the page's request.
    pub(super) fn new(url: String, who: Who, fields: &Fields<'_>) -> Self {
        Self {
            url,
            who,
            accepted: fields.get("accept-encoding").unwrap_or_default().to_vec(),
            browser: Browser::of(fields),
            no_referer: false,
        }
    }

    /// The request for an object, as the visitor's browser would send it, without credentials.
    ///
    /// An object that the page does not name is for everybody. Its request says nothing of the visitor, so that nobody can
    /// plant requests that carry another visitor's words.
    pub(super) fn request_for(&self, fetch: &Fetch) -> Vec<(&'static str, String)> {
        let own = authority(&fetch.url);
        let path = fetch.url.strip_prefix("http://").and_then(|rest| rest.get(own.len()..)).unwrap_or_default();
        // As browsers say it unless a page wants otherwise: the whole URL to its own origin, the root to others
        // (<https://www.w3.org/TR/referrer-policy/>, strict-origin-when-cross-origin).
        let is_own = authority(&fetch.referrer) == own && fetch.usage.is_some();
        let referer = if is_own { &fetch.referrer } else { root(&fetch.referrer) };
        let object = Object {
            is_secure: false,
            authority: own,
            path,
            destination: fetch.usage.map(Use::destination),
            referer: (!self.no_referer).then_some(referer),
        };
        if fetch.usage.is_some() { self.browser.request(object) } else { Browser::neutral().request(object) }
    }
}
