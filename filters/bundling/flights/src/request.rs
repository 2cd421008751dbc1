//! Which requests open a flight, and which may be answered from one.

use crate::fields::Fields;
use crate::limits;

/// The URL that a request over plain http is for, as a page's parser spells it. None for what has no such spelling.
fn url(fields: Fields<'_>) -> Option<String> {
    let (authority, path) = (fields.text(":authority")?, fields.text(":path")?);
    let host = authority.strip_suffix(":80").unwrap_or(authority).to_ascii_lowercase();
    let plain = !host.is_empty() && !host.contains(['/', '@', '?', '#']) && path.starts_with('/');
    let url = format!("http://{host}{path}");
    (plain && url.len() <= limits::URL_BYTES).then_some(url)
}

fn is_get(fields: Fields<'_>) -> bool {
    fields.get(":method") == Some(b"GET") && !fields.has("upgrade")
}

/// Whoever asks wants it from the origin itself.
fn wants_the_origins(fields: Fields<'_>) -> bool {
    let no_cache = ["no-cache", "no-store"].iter().any(|token| fields.lists("cache-control", token));
    no_cache || fields.lists("pragma", "no-cache")
}

/// The page that a request opens a flight for.
pub(crate) fn page(fields: Fields<'_>) -> Option<String> {
    let is_navigation = match fields.get("sec-fetch-dest") {
        Some(destination) => destination == b"document",
        None => true,
    };
    let is_speculative = fields.lists("sec-purpose", "prefetch") || fields.lists("purpose", "prefetch");
    let for_a_reader = is_get(fields) && fields.lists("accept", "text/html") && is_navigation && !is_speculative;
    // Who has the page has its objects, too.
    let has_it = fields.has("if-none-match") || fields.has("if-modified-since");
    let helped = for_a_reader && !has_it && !fields.has("range") && !wants_the_origins(fields);
    if helped { url(fields) } else { None }
}

/// A request that an object any client may have can answer, if it is the one that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) url: String,
    /// `Accept-Encoding`.
    pub(crate) accepted: Vec<u8>,
    /// Bears a cookie, so that only what says it is for everybody will do.
    pub(crate) with_cookie: bool,
    /// The `Referer` of somebody who bears no cookie: what others ask for on behalf of a page is learnt from them alone.
    pub(crate) referrer: Option<String>,
    /// Made with CORS: only an answer that allows every origin will do, as ours was asked for without one.
    pub(crate) with_origin: bool,
}

/// Makes an answer from somewhere else than the origin wrong, or is no matter of whole objects.
const NEVER: [&str; 9] = [
    "authorization",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "proxy-authorization",
    "range",
    "service-worker",
];

/// None for a request that must cross the link.
pub(crate) fn asked(fields: Fields<'_>) -> Option<Asked> {
    let any_type = fields.get("accept").is_none() || fields.lists("accept", "*/*");
    let plain = is_get(fields) && any_type && !NEVER.iter().any(|name| fields.has(name)) && !wants_the_origins(fields);
    let revalidates = fields.items("cache-control").any(|item| item.eq_ignore_ascii_case(b"max-age=0"));
    if !plain || revalidates {
        return None;
    }
    let with_cookie = fields.has("cookie");
    Some(Asked {
        url: url(fields)?,
        accepted: fields.get("accept-encoding").unwrap_or_default().to_vec(),
        with_cookie,
        referrer: fields.text("referer").filter(|_| !with_cookie).map(str::to_owned),
        with_origin: fields.has("origin"),
    })
}

/// The client's address from `address:port`, as proxies write it; brackets around IPv6 stay.
pub fn without_port(address: &[u8]) -> &[u8] {
    let colon = address.iter().rposition(|byte| *byte == b':');
    let is_port = |at: usize| address.get(at + 1..).is_some_and(|port| port.iter().all(u8::is_ascii_digit));
    match colon {
        Some(at) if is_port(at) => address.get(..at).unwrap_or(address),
        _ => address,
    }
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

    fn with<T>(base: &[(&str, &str)], name: &str, value: &str, of: impl Fn(Fields<'_>) -> T) -> T {
        let mut list: Vec<(&[u8], &[u8])> = base
            .iter()
            .filter(|(known, _)| *known != name || !name.starts_with([':', 'a']))
            .map(|(known, value)| (known.as_bytes(), value.as_bytes()))
            .collect();
        if !value.is_empty() {
            list.push((name.as_bytes(), value.as_bytes()));
        }
        of(Fields(&list))
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
        for name in NEVER {
            assert_eq!(with(IMAGE, name, "x", asked), None, "{name}");
        }
        for (name, value) in [
            (":method", "HEAD"),
            ("accept", "application/json"),
            ("cache-control", "no-cache"),
            ("cache-control", "max-age=0"),
            ("pragma", "no-cache"),
            ("upgrade", "websocket"),
        ] {
            assert_eq!(with(IMAGE, name, value, asked), None, "{name}: {value}");
        }
    }
}
