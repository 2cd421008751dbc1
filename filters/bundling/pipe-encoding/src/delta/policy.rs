//! Which pages become a base, and which are sent as a delta.

use std::time::SystemTime;

use http_semantics::navigation::{bypasses_caches, page_load};
use http_semantics::{Fields, Purpose, labelled, shareable};

use super::bases::Reach;
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

/// Returns true if the request has no credentials, and no wish to bypass stores. Only its page may become a base.
pub(super) fn is_anonymous(request: &Fields<'_>) -> bool {
    !request.has("cookie") && !request.has("authorization") && !bypasses_caches(request)
}

/// Returns the pages that a page may be encoded against. Another host of a site may belong to somebody else, because the
/// rule for sites knows no list of public suffixes. The length of a delta shows how a page resembles its base. So a
/// private page has no base that another host may have written.
pub(super) fn reach(request: &Fields<'_>) -> Reach {
    if request.has("cookie") || request.has("authorization") { Reach::Host } else { Reach::Site }
}

/// Returns true if the response to an anonymous request may become a base: any client may have it. The length of a delta
/// shows how much a page has in common with its base, so a private base would show a visitor's page to others.
pub(super) fn is_public(response: &Fields<'_>) -> bool {
    shareable(Purpose::Push, &Fields::default(), response, SystemTime::UNIX_EPOCH).is_ok()
}

/// Decides if the response to a page request may cross the link as a delta. A private page may: only its reader learns
/// its length.
///
/// # Errors
/// The reason why it may not.
pub(super) fn may_be_delta(response: &Fields<'_>, has_body: bool) -> Result<(), Left> {
    let rows = [
        (response.status() != 200 || !has_body, Left::Status),
        (!is_html(response), Left::Type),
        (response.lists("cache-control", "no-transform"), Left::NoTransform),
        (codings(response).next().is_some() && !is_gzip(response), Left::Encoded),
    ];
    rows.into_iter().find(|(applies, _)| *applies).map_or(Ok(()), |(_, why)| Err(why))
}

/// Returns the verdict on the response to a visitor without cookies or credentials. True: the page also becomes a base.
///
/// # Errors
/// The reason why the page crosses the link without a base.
pub fn verdict(response: &Fields<'_>) -> Result<bool, Left> {
    may_be_delta(response, true).map(|()| is_public(response))
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
    fn only_what_any_client_may_have_becomes_a_base() {
        assert!(is_anonymous(&of(&[GET, PAGE])));
        for request in [("cookie", "a=b"), ("authorization", "x"), ("cache-control", "no-store")] {
            assert!(!is_anonymous(&of(&[GET, PAGE, request])), "{request:?}");
        }
        for response in
            [&[OK, HTML][..], &[OK, HTML, ("vary", "Accept-Encoding")], &[OK, ("cache-control", "no-cache")]]
        {
            assert!(is_public(&of(response)), "{response:?}");
        }
        for response in [
            &[OK, HTML, ("set-cookie", "a=b")][..],
            &[OK, HTML, ("cache-control", "public"), ("set-cookie", "a=b")],
            &[OK, HTML, ("cache-control", "private")],
            &[OK, HTML, ("cache-control", "no-store")],
            &[OK, HTML, ("vary", "Cookie")],
            &[(":status", "404"), HTML],
        ] {
            assert!(!is_public(&of(response)), "{response:?}");
        }
    }

    #[test]
    fn a_private_page_has_bases_of_its_host_alone() {
        assert_eq!(reach(&of(&[GET, PAGE])), Reach::Site);
        for name in ["cookie", "authorization"] {
            assert_eq!(reach(&of(&[GET, PAGE, (name, "x")])), Reach::Host, "{name}");
        }
    }

    #[test]
    fn a_delta_is_a_whole_plain_page_that_may_be_changed() {
        assert_eq!(may_be_delta(&of(&[OK, HTML]), true), Ok(()));
        assert_eq!(may_be_delta(&of(&[OK, HTML, ("cache-control", "private")]), true), Ok(()));
        assert_eq!(may_be_delta(&of(&[OK, HTML, ("content-encoding", "gzip")]), true), Ok(()));
        assert_eq!(may_be_delta(&of(&[OK, HTML]), false), Err(Left::Status));
        for (response, why) in [
            (&[OK, HTML, ("cache-control", "no-transform")][..], Left::NoTransform),
            (&[OK, HTML, ("content-encoding", "br")], Left::Encoded),
            (&[OK, HTML, ("content-encoding", "gzip, gzip")], Left::Encoded),
            (&[(":status", "304"), HTML], Left::Status),
            (&[(":status", "206"), HTML], Left::Status),
            (&[OK, ("content-type", "image/png")], Left::Type),
        ] {
            assert_eq!(may_be_delta(&of(response), true), Err(why), "{response:?}");
        }
    }
}
