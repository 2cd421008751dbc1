//! The requests that the far end makes for a page's objects, on behalf of its visitor.

use http_semantics::accept;
use url_mapping::Use;

use super::flight::Fetch;
use super::lessons::Who;
use crate::digest::{authority, root};
use crate::fields::Fields;

/// Fields of the page's request that requests for its objects repeat, so that an origin responds as it would to the
/// browser. None of them is a credential.
const REPEATED: [&str; 4] = ["user-agent", "accept-language", "dnt", "sec-gpc"];
/// A request for an object that the page does not name says only this of its sender: the object is for everybody, and
/// nobody can plant requests that carry another visitor's words.
const NEUTRAL: (&str, &str) = ("user-agent", "Mozilla/5.0");

/// The visitor who asked for the page.
#[derive(Debug, Clone)]
pub(super) struct Visitor {
    pub(super) url: String,
    pub(super) who: Who,
    /// `Accept-Encoding`.
    pub(super) accepted: Vec<u8>,
    repeated: Vec<(&'static str, String)>,
    /// `Accept` of its requests for pictures.
    pictures: &'static str,
    /// The page says something about referrers: then none is sent.
    pub(super) no_referer: bool,
}

impl Visitor {
    /// By the page's request.
    pub(super) fn new(url: String, who: Who, fields: Fields<'_>) -> Self {
        Self {
            url,
            who,
            accepted: fields.get("accept-encoding").unwrap_or_default().to_vec(),
            repeated: REPEATED.iter().filter_map(|&name| Some((name, fields.text(name)?.to_owned()))).collect(),
            pictures: accept::pictures(fields.get("accept").unwrap_or_default()),
            no_referer: false,
        }
    }

    /// The request for an object, as the visitor's browser would send it, without credentials.
    pub(super) fn request_for(&self, fetch: &Fetch) -> Vec<(&'static str, String)> {
        let own = authority(&fetch.url);
        let path = fetch.url.strip_prefix("http://").and_then(|rest| rest.get(own.len()..)).unwrap_or_default();
        let accept = match fetch.usage {
            Some(Use::Stylesheet | Use::CssImport) => accept::SHEETS,
            Some(Use::Image | Use::CssImage | Use::Poster | Use::Background | Use::Icon) => self.pictures,
            Some(Use::Script | Use::Font | Use::Media | Use::Track) | None => accept::ANYTHING,
        };
        let mut fields = vec![
            (":method", "GET".to_owned()),
            (":scheme", "http".to_owned()),
            (":authority", own.to_owned()),
            (":path", path.to_owned()),
            ("accept", accept.to_owned()),
        ];
        if fetch.usage.is_some() {
            fields.extend(self.repeated.iter().cloned());
        } else {
            fields.push((NEUTRAL.0, NEUTRAL.1.to_owned()));
        }
        if !self.no_referer {
            // As browsers say it unless a page wants otherwise: the whole URL to its own origin, the root to others
            // (<https://www.w3.org/TR/referrer-policy/>, strict-origin-when-cross-origin).
            let is_own = authority(&fetch.referrer) == own && fetch.usage.is_some();
            let referer = if is_own { &fetch.referrer } else { root(&fetch.referrer) };
            fields.push(("referer", referer.to_owned()));
        }
        fields
    }
}
