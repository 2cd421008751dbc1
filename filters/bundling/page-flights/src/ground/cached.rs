//! The objects in the cache of a remote: responses to browsers' requests that the remote has stored on their way. A flight
//! validates them instead of sending them again.
//!
//! The ground guesses. A remote may have removed an object, or have no room for it. Then the browser's request crosses the
//! link as without bundling.

use http_semantics::Fields;
use object_rules::storable;

use crate::digest::{Ident, ident, path};
use crate::{CACHES_FIELD, read_store, request};

/// A response on its way to a remote that has a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passing {
    pub(super) store: u64,
    url: String,
    with_cookie: bool,
}

impl Passing {
    /// Returns None if the remote has no cache, or does not store the response to such a request.
    pub(super) fn of(fields: &Fields<'_>) -> Option<Self> {
        let store = read_store(fields.text(CACHES_FIELD)?)?;
        if ["authorization", "range"].iter().any(|name| fields.has(name)) {
            return None;
        }
        Some(Self { store, url: request::got(fields)?, with_cookie: fields.has("cookie") })
    }

    /// Returns the [`name`] of the response. None if the remote does not store it.
    pub(super) fn name(&self, response: &Fields<'_>) -> Option<Ident> {
        let cookie = self.with_cookie.then_some((&b"cookie"[..], &b""[..]));
        let request = [(&b":path"[..], path(&self.url).as_bytes())].into_iter().chain(cookie).collect();
        // Whether it is stored does not depend on the time of day.
        let is_whole = response.status() == 200 && storable(&request, response, 0, 0).is_ok();
        if is_whole { name(&self.url, response) } else { None }
    }
}

/// Names a response by its URL and its validator. None if it has no validator.
pub(super) fn name(url: &str, response: &Fields<'_>) -> Option<Ident> {
    let validator = response.get("etag").or_else(|| response.get("last-modified"))?;
    // Proxies that compress weaken a tag on the way.
    Some(ident(url.as_bytes(), validator.strip_prefix(b"W/").unwrap_or(validator)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: (&str, &str) = ("cache-control", "max-age=3600");
    const TAG: (&str, &str) = ("etag", "\"a\"");
    const URL: &str = "http://www.example.org/a.js";

    fn fields<'f>(list: &[(&'f str, &'f str)]) -> Fields<'f> {
        list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    fn passing(more: &[(&'static str, &'static str)]) -> Option<Passing> {
        let method = if more.iter().any(|(name, _)| *name == ":method") { None } else { Some((":method", "GET")) };
        let own = [(":authority", "www.example.org"), (":path", "/a.js"), (CACHES_FIELD, "0102030405060708")];
        Passing::of(&fields(&[&own[..], method.as_slice(), more].concat()))
    }

    fn of(status: &'static str, more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
        [&[(":status", status)][..], more].concat()
    }

    #[test]
    fn a_response_that_passed_is_found_by_its_validator() {
        let passed = passing(&[]).unwrap();
        assert_eq!(passed.store, u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8]));
        let stored = passed.name(&fields(&of("200", &[HOUR, TAG])));
        assert!(stored.is_some());
        for (url, response, expected) in [
            (URL, &[TAG][..], true),
            (URL, &[("etag", "W/\"a\""), HOUR], true),
            (URL, &[("etag", "\"b\"")], false),
            (URL, &[("last-modified", "\"a\"")], true),
            ("http://www.example.org/b.js", &[TAG], false),
        ] {
            assert_eq!(name(url, &fields(response)) == stored, expected, "{url} {response:?}");
        }
        assert_eq!(name(URL, &fields(&[HOUR])), None);
    }

    #[test]
    fn responses_that_a_remote_does_not_store_are_unknown() {
        for request in [("authorization", "x"), ("range", "bytes=0-1"), (":method", "POST")] {
            assert_eq!(passing(&[request]), None, "{request:?}");
        }
        let cookie = passing(&[("cookie", "a=b")]).unwrap();
        assert_eq!(cookie.name(&fields(&of("200", &[HOUR, TAG]))), None);
        for (status, more) in [
            ("206", &[HOUR, TAG][..]),
            ("304", &[HOUR, TAG]),
            ("404", &[HOUR, TAG]),
            ("200", &[HOUR, TAG, ("set-cookie", "a=b")]),
            ("200", &[TAG, ("cache-control", "private")]),
            ("200", &[HOUR]),
        ] {
            assert_eq!(passing(&[]).unwrap().name(&fields(&of(status, more))), None, "{status} {more:?}");
        }
    }
}
