//! The ground's requests for a page's objects, on behalf of the page's visitor.

use http_semantics::Fields;
use http_semantics::object_request::{Browser, Object};
use pipe_encoding::accept::takes;
use pipe_encoding::{TAKES, TAKES_FIELD};
use url_mapping::Use;

use super::fetch::Fetch;
use super::lessons::Who;
use crate::digest::{authority, path, root};

/// The visitor who requested the page.
#[derive(Debug, Clone)]
pub(super) struct Visitor {
    pub(super) url: String,
    pub(super) who: Who,
    /// `Accept-Encoding`.
    pub(super) accepted: Vec<u8>,
    browser: Browser,
    /// True if the page's response has a `Referrer-Policy`. Then no request has a `Referer`.
    pub(super) no_referer: bool,
}

impl Visitor {
    /// Reads the visitor's fields from the request for the page.
    pub(super) fn new(url: String, who: Who, fields: &Fields<'_>) -> Self {
        Self {
            url,
            who,
            accepted: fields.get("accept-encoding").unwrap_or_default().to_vec(),
            browser: Browser::of(fields),
            no_referer: false,
        }
    }

    /// Returns the request for an object as the visitor's browser would send it, but without credentials.
    ///
    /// An object that the page does not name is for every client. Its request repeats no field of the visitor. So
    /// nobody can make the ground send requests of their choice with another visitor's fields.
    pub(super) fn request_for(&self, fetch: &Fetch) -> Vec<(&'static str, String)> {
        let own = authority(&fetch.url);
        // By default, browsers send the whole URL to the page's own origin and the root to others
        // (<https://www.w3.org/TR/referrer-policy/>, strict-origin-when-cross-origin).
        let is_own = authority(&fetch.referrer) == own && fetch.usage.is_some();
        let referer = if is_own { &fetch.referrer } else { root(&fetch.referrer) };
        let object = Object {
            is_secure: false,
            authority: own,
            path: path(&fetch.url),
            destination: fetch.usage.map(Use::destination),
            referer: (!self.no_referer).then_some(referer),
        };
        let mut fields =
            if fetch.usage.is_some() { self.browser.request(object) } else { Browser::neutral().request(object) };
        // The proxy makes of it an `Accept-Encoding` with br.
        fields.extend(takes(&self.accepted, TAKES.as_bytes()).then(|| (TAKES_FIELD, TAKES.to_owned())));
        fields
    }
}
