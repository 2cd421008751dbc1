//! Decides which requests open a flight, and which requests a flight can serve.

use http_semantics::Fields;
use http_semantics::navigation::{Shown, bypasses_caches, is_speculative, page_load, saves_data};

use crate::fields::head;
use crate::limits;

/// Returns the URL of a request over plain http, spelled as a page's parser does. `None` if it has no such spelling.
fn url(fields: &Fields<'_>) -> Option<String> {
    let (authority, path) = (fields.text(":authority")?, fields.text(":path")?);
    let host = authority.strip_suffix(":80").unwrap_or(authority).to_ascii_lowercase();
    let plain = !host.is_empty() && !host.contains(['/', '@', '?', '#']) && path.starts_with('/');
    let url = format!("http://{host}{path}");
    (plain && url.len() <= limits::URL_BYTES).then_some(url)
}

fn is_get(fields: &Fields<'_>) -> bool {
    fields.get(":method") == Some(b"GET") && !fields.has("upgrade")
}

/// Returns the URL of the page if the request opens a flight.
pub(crate) fn page(fields: &Fields<'_>) -> Option<String> {
    if !is_get(fields) {
        return None;
    }
    let for_a_reader = page_load(fields) == Some(Shown::Window) && !is_speculative(fields) && !saves_data(fields);
    // A browser that has the page has its objects, too.
    let has_it = fields.has("if-none-match") || fields.has("if-modified-since");
    let helped = for_a_reader && !has_it && !fields.has("range") && !bypasses_caches(fields);
    if helped { url(fields) } else { None }
}

/// Returns the URL of a GET.
pub(crate) fn got(fields: &Fields<'_>) -> Option<String> {
    if is_get(fields) { url(fields) } else { None }
}

/// A request that a shared object can serve, if it has the right URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) url: String,
    /// `Accept-Encoding`.
    pub(crate) accepted: Vec<u8>,
    /// `Accept`.
    pub(crate) types: Vec<u8>,
    /// The request has a cookie, so only an object marked `public` can serve it.
    pub(crate) with_cookie: bool,
    /// `Referer`.
    pub(crate) referrer: Option<String>,
    /// The request has `Origin` (CORS). Only a response for every origin can serve it, because the ground requests
    /// objects without `Origin`.
    pub(crate) with_origin: bool,
}

/// All fields that a request served from a flight may have. The ground's request for the object has no others. With any
/// other field, the origin may respond differently. A request with a field of the ends is not held either: the field would
/// cross the link when the request goes on.
const UNDERSTOOD: [&str; 30] = [
    ":authority",
    ":method",
    ":path",
    ":scheme",
    "accept",
    "accept-encoding",
    "accept-language",
    "connection",
    "cookie",
    "dnt",
    "host",
    "keep-alive",
    "origin",
    "priority",
    "proxy-connection",
    "referer",
    "save-data",
    "sec-ch-ua",
    "sec-ch-ua-mobile",
    "sec-ch-ua-platform",
    "sec-fetch-dest",
    "sec-fetch-mode",
    "sec-fetch-site",
    "sec-gpc",
    "te",
    "user-agent",
    // The proxy sets these fields and removes them before the origin.
    "x-envoy-external-address",
    "x-envoy-internal",
    "x-forwarded-for",
    "x-forwarded-proto",
];

/// Destinations of objects that are parts of a page (Fetch, "destination").
const PARTS: [&[u8]; 7] = [b"audio", b"empty", b"font", b"image", b"script", b"style", b"video"];

/// Returns true for a media type that requests for parts of a page name, and other requests do not.
fn is_of_part(media_type: &[u8]) -> bool {
    let media_type = media_type.to_ascii_lowercase();
    let begins =
        [&b"image/"[..], b"text/css", b"font/", b"audio/", b"video/", b"application/font", b"application/x-font"];
    let ends = [&b"javascript"[..], b"ecmascript"];
    media_type == b"*/*"
        || begins.iter().any(|head| media_type.starts_with(head))
        || ends.iter().any(|tail| media_type.ends_with(tail))
}

/// Reads a request that a flight may serve. `None` means that the request must cross the link.
pub(crate) fn asked(fields: &Fields<'_>) -> Option<Asked> {
    let is_understood = fields.iter().all(|(name, _)| UNDERSTOOD.iter().any(|known| known.as_bytes() == name));
    let is_part = fields.get("sec-fetch-dest").is_none_or(|destination| PARTS.contains(&destination));
    let any_type = fields.get("accept").is_none()
        || (fields.lists("accept", "*/*") && fields.items("accept").all(|item| is_of_part(head(item))));
    if !(is_get(fields) && is_understood && is_part && any_type) {
        return None;
    }
    Some(Asked {
        url: url(fields)?,
        accepted: fields.get("accept-encoding").unwrap_or_default().to_vec(),
        types: fields.get("accept").unwrap_or_default().to_vec(),
        with_cookie: fields.has("cookie"),
        referrer: fields.text("referer").map(str::to_owned),
        with_origin: fields.has("origin"),
    })
}

impl Asked {
    /// Returns the page for which others may learn from this request. `None` for a request with a cookie.
    pub(crate) fn teaches(&self) -> Option<&str> {
        self.referrer.as_deref().filter(|_| !self.with_cookie)
    }
}

/// Returns the URL of a request whose method is not safe (RFC 9110, 9.2.1).
pub(crate) fn written(fields: &Fields<'_>) -> Option<String> {
    let is_safe = matches!(fields.get(":method"), Some(b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE"));
    if is_safe { None } else { url(fields) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &[(&str, &str)] = &[
        (":method", "GET"),
        (":authority", "WWW.site.test:80"),
        (":path", "/a?b"),
        ("accept", "text/html,application/xhtml+xml,*/*;q=0.8"),
        ("upgrade-insecure-requests", "1"),
    ];
    const IMAGE: &[(&str, &str)] = &[
        (":method", "GET"),
        (":authority", "img.site.test"),
        (":path", "/a.png"),
        ("accept", "image/avif,image/*,*/*;q=0.8"),
        ("accept-encoding", "gzip"),
    ];

    fn with<T>(base: &[(&str, &str)], name: &str, value: &str, of: impl Fn(&Fields<'_>) -> T) -> T {
        let mut list: Vec<(&[u8], &[u8])> = base
            .iter()
            .filter(|(known, _)| *known != name || !name.starts_with([':', 'a']))
            .map(|(known, value)| (known.as_bytes(), value.as_bytes()))
            .collect();
        if !value.is_empty() {
            list.push((name.as_bytes(), value.as_bytes()));
        }
        of(&Fields::from(&list[..]))
    }

    #[test]
    fn a_navigation_opens_a_flight_and_nothing_else_does() {
        assert_eq!(with(PAGE, "x", "", page).as_deref(), Some("http://www.site.test/a?b"));
        assert!(with(PAGE, "sec-fetch-dest", "document", page).is_some());
        for (name, value) in [
            (":method", "POST"),
            ("range", "bytes=0-"),
            ("sec-fetch-dest", "iframe"),
            ("sec-purpose", "prefetch;prerender"),
            ("accept", "image/*"),
            ("cache-control", "no-cache"),
            (":authority", "a@b"),
            ("save-data", "on"),
            ("if-none-match", "\"x\""),
            ("if-modified-since", "Sat, 21 Nov 2026 13:00:00 GMT"),
        ] {
            assert_eq!(with(PAGE, name, value, page), None, "{name}: {value}");
        }
        assert_eq!(with(IMAGE, "x", "", page), None);
    }

    #[test]
    fn a_request_for_an_object_can_be_answered_unless_it_says_more_than_which() {
        let plain = with(IMAGE, "x", "", asked).unwrap();
        assert_eq!((&*plain.url, plain.with_cookie, plain.with_origin), ("http://img.site.test/a.png", false, false));
        assert!(with(IMAGE, "cookie", "a=b", asked).unwrap().with_cookie);
        assert_eq!(
            with(IMAGE, "referer", "http://a.test/", asked).unwrap().referrer.as_deref(),
            Some("http://a.test/")
        );
        assert!(with(IMAGE, "origin", "http://www.site.test", asked).unwrap().with_origin);
        assert!(with(IMAGE, "accept", "image/*,, */*,", asked).is_some(), "empty items of a list are none");
        for (name, value) in [
            (":method", "HEAD"),
            ("accept", "application/json"),
            ("cache-control", "no-cache"),
            ("cache-control", "max-age=0"),
            ("pragma", "no-cache"),
            ("upgrade", "websocket"),
            ("accept", "text/html, */*; q=0.01"),
            ("accept", "application/json, text/plain, */*"),
            ("authorization", "x"),
            ("range", "bytes=0-"),
            ("if-none-match", "x"),
            ("x-api-key", "x"),
            ("x-auth-token", "x"),
            ("x-requested-with", "XMLHttpRequest"),
            (crate::FLIGHT_FIELD, "00;00;00"),
            ("x-forwarded-host", "x"),
            ("upgrade-insecure-requests", "1"),
            ("service-worker", "script"),
            ("sec-fetch-dest", "document"),
            ("sec-fetch-dest", "iframe"),
            ("sec-fetch-dest", "worker"),
        ] {
            assert_eq!(with(IMAGE, name, value, asked), None, "{name}: {value}");
        }
    }
}
