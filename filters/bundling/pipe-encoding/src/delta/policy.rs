//! Which pages become a base, and which are sent as a delta.

use std::time::SystemTime;

use http_semantics::navigation::{bypasses_caches, page_load};
use http_semantics::{Fields, Purpose, labelled, shareable};

use crate::fields::{codings, is_gzip};

labelled! {
    /// The reason why a page crosses the link without a base.
    Left {
        /// The status is not 200, or the response has no body.
        Status = "status";
        /// The response is no HTML.
        Type = "type";
        /// The origin forbids changes (`Cache-Control: no-transform`).
        NoTransform = "no_transform";
        /// The body has a content encoding other than gzip.
        Encoded = "encoded";
        /// Not every client may have the page. The length of a difference would show what it has in common with its base.
        Private = "private";
        /// The remote has no page of the site that the ground has, too.
        NoBase = "no_base";
        /// The worker encodes too many pages already.
        Memory = "memory";
    }
}

/// Returns true if the request loads a page. Only such a request may name bases.
pub(super) fn is_page_request(request: &Fields<'_>) -> bool {
    request.get(":method") == Some(b"GET")
        && page_load(request).is_some()
        && !request.has("range")
        && !request.has("upgrade")
}

/// The facts about a page request that decide who may have its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts about one request")]
pub(super) struct Asked {
    with_cookie: bool,
    with_authorization: bool,
    stores_nothing: bool,
    bypasses_caches: bool,
}

impl Asked {
    /// Reads a request.
    pub(super) fn of(request: &Fields<'_>) -> Self {
        Self {
            with_cookie: request.has("cookie"),
            with_authorization: request.has("authorization"),
            stores_nothing: request.lists("cache-control", "no-store"),
            bypasses_caches: bypasses_caches(request),
        }
    }

    /// Returns true if the response may become a base: any client may have it, and the request has no credentials and no
    /// wish to bypass stores.
    pub(super) fn may_be_base(self, response: &Fields<'_>) -> bool {
        !self.with_cookie && !self.with_authorization && !self.bypasses_caches && self.is_public(response)
    }

    /// Returns true if any client may have the response. The length of a delta shows how much a page has in common with its
    /// base, and somebody else may have written the base. So a private page neither is a base nor has one.
    fn is_public(self, response: &Fields<'_>) -> bool {
        let credentials = [(self.with_cookie, &b"cookie"[..]), (self.with_authorization, b"authorization")];
        let fields = credentials.into_iter().filter_map(|(applies, name)| applies.then_some((name, &b""[..])));
        let no_store = self.stores_nothing.then_some((&b"cache-control"[..], &b"no-store"[..]));
        let request = fields.chain(no_store).collect();
        shareable(Purpose::Push, &request, response, SystemTime::UNIX_EPOCH).is_ok()
    }

    /// Decides if the response may cross the link as a delta.
    ///
    /// # Errors
    /// The reason why it may not.
    pub(super) fn may_be_delta(self, response: &Fields<'_>, has_body: bool) -> Result<(), Left> {
        let rows = [
            (response.status() != 200 || !has_body, Left::Status),
            (!is_html(response), Left::Type),
            (response.lists("cache-control", "no-transform"), Left::NoTransform),
            (codings(response).next().is_some() && !is_gzip(response), Left::Encoded),
            (!self.is_public(response), Left::Private),
        ];
        rows.into_iter().find(|(applies, _)| *applies).map_or(Ok(()), |(_, why)| Err(why))
    }
}

/// Returns the verdict on the response to a visitor without cookies or credentials. Such a page also becomes a base.
///
/// # Errors
/// The reason why the page crosses the link without a base.
pub fn verdict(response: &Fields<'_>) -> Result<(), Left> {
    Asked::of(&Fields::default()).may_be_delta(response, true)
}

fn is_html(response: &Fields<'_>) -> bool {
    let kind = response.get("content-type").unwrap_or_default().split(|&byte| byte == b';').next().unwrap_or_default();
    kind.trim_ascii().eq_ignore_ascii_case(b"text/html")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &[(&'static str, &'static str)]) -> Fields<'static> {
        list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    const GET: (&str, &str) = (":method", "GET");
    const PAGE: (&str, &str) = ("accept", "text/html,*/*;q=0.8");
    const OK: (&str, &str) = (":status", "200");
    const HTML: (&str, &str) = ("content-type", "text/html; charset=utf-8");
    const PUBLIC: (&str, &str) = ("cache-control", "public");

    #[test]
    fn only_page_loads_name_bases() {
        assert!(is_page_request(&of(&[GET, PAGE])));
        for request in [
            &[(":method", "POST"), PAGE][..],
            &[(":method", "HEAD"), PAGE],
            &[GET, ("accept", "*/*")],
            &[GET, PAGE, ("range", "bytes=0-")],
            &[GET, PAGE, ("upgrade", "websocket")],
            &[GET, PAGE, ("sec-fetch-dest", "empty")],
        ] {
            assert!(!is_page_request(&of(request)), "{request:?}");
        }
    }

    #[test]
    fn only_what_any_client_may_have_is_a_base_or_has_one() {
        let verdicts = |request: &[_], response: &[_]| {
            let (asked, response) = (Asked::of(&of(request)), of(response));
            (asked.may_be_delta(&response, true), asked.may_be_base(&response))
        };
        for (request, response, base) in [
            (&[GET, PAGE][..], &[OK, HTML][..], true),
            (&[GET, PAGE], &[OK, HTML, ("vary", "Accept-Encoding")], true),
            (&[GET, PAGE], &[OK, HTML, ("cache-control", "no-cache")], true),
            (&[GET, PAGE, ("cache-control", "no-cache")], &[OK, HTML], false),
            (&[GET, PAGE, ("cookie", "a=b")], &[OK, HTML, PUBLIC], false),
            (&[GET, PAGE, ("authorization", "x")], &[OK, HTML, PUBLIC], false),
        ] {
            assert_eq!(verdicts(request, response), (Ok(()), base), "{request:?} {response:?}");
        }
        for (request, response) in [
            (&[GET, PAGE, ("cookie", "a=b")][..], &[OK, HTML][..]),
            (&[GET, PAGE, ("authorization", "x")], &[OK, HTML]),
            (&[GET, PAGE, ("cache-control", "no-store")], &[OK, HTML]),
            (&[GET, PAGE], &[OK, HTML, ("set-cookie", "a=b")]),
            (&[GET, PAGE], &[OK, HTML, PUBLIC, ("set-cookie", "a=b")]),
            (&[GET, PAGE], &[OK, HTML, ("cache-control", "private")]),
            (&[GET, PAGE], &[OK, HTML, ("cache-control", "no-store")]),
            (&[GET, PAGE], &[OK, HTML, ("vary", "Cookie")]),
        ] {
            assert_eq!(verdicts(request, response), (Err(Left::Private), false), "{request:?} {response:?}");
        }
    }

    #[test]
    fn a_delta_is_a_whole_plain_page_that_may_be_changed() {
        let may_be_delta =
            |response: &[_], has_body| Asked::of(&of(&[GET, PAGE])).may_be_delta(&of(response), has_body);
        assert_eq!(may_be_delta(&[OK, HTML], true), Ok(()));
        assert_eq!(may_be_delta(&[OK, HTML, ("content-encoding", "gzip")], true), Ok(()));
        assert_eq!(may_be_delta(&[OK, HTML], false), Err(Left::Status));
        for (response, why) in [
            (&[OK, HTML, ("cache-control", "no-transform")][..], Left::NoTransform),
            (&[OK, HTML, ("content-encoding", "br")], Left::Encoded),
            (&[OK, HTML, ("content-encoding", "gzip, gzip")], Left::Encoded),
            (&[(":status", "304"), HTML], Left::Status),
            (&[(":status", "206"), HTML], Left::Status),
            (&[OK, ("content-type", "image/png")], Left::Type),
        ] {
            assert_eq!(may_be_delta(response, true), Err(why), "{response:?}");
        }
    }
}
