//! Update of a stored response by a 304 (RFC 9111 sections 3.2 and 4.3.4), and the fields that are never stored (3.1).

use http_semantics::body_fields::ROWS;
use http_semantics::{FieldList, Fields};

use crate::tags;

/// Fields of one connection (RFC 9110 section 7.6.1) and of the hop to a proxy (RFC 9111 section 3.1).
const HOP_BY_HOP: [&[u8]; 11] = [
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"proxy-authenticate",
    b"proxy-authentication-info",
    b"proxy-authorization",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
    b"http2-settings",
];

/// Returns the fields without those of one connection, and without those that `Connection` names. The caller asks
/// [`storable`](crate::storable) about the message as it arrived, because `Connection` may name `Cache-Control`.
pub fn without_hop_by_hop(fields: &Fields<'_>) -> FieldList {
    end_to_end(fields).map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
}

/// Returns the stored fields after a 304. The fields of the 304 replace those of the same name, except for the fields that
/// describe the stored body. `Age` and `Date` of the earlier response go in any case, because they would make the response
/// older than it is.
///
/// The caller asks [`storable`](crate::storable) about the result. A 304 that sets a cookie, or says `private`, makes the
/// response unfit for storage.
pub fn updated(stored: &Fields<'_>, fresh: &Fields<'_>) -> FieldList {
    let new: Vec<_> = end_to_end(fresh).filter(|(name, _)| !is_kept(name)).collect();
    let is_replaced = |name: &[u8]| matches!(name, b"age" | b"date") || new.iter().any(|(other, _)| *other == name);
    let old = end_to_end(stored).filter(|(name, _)| !is_replaced(name));
    old.chain(new.iter().copied()).map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
}

/// Returns true if a 304 validates the stored response (RFC 9111 section 4.3.4). The caller asked about this response alone,
/// so a 304 without a validator means it.
pub fn matches(stored: &Fields<'_>, fresh: &Fields<'_>) -> bool {
    let own = stored.get("etag");
    match (fresh.get("etag"), fresh.get("last-modified")) {
        // `If-None-Match` was compared weakly. Proxies that compress weaken a tag on the way, so its strength says nothing.
        (Some(tag), _) => own.is_some_and(|own| tags::weakly_equal(own, tag)),
        (None, Some(changed)) => stored.get("last-modified") == Some(changed),
        (None, None) => true,
    }
}

/// Pseudo fields belong to the message. The other fields describe the body, which a 304 does not change. RFC 9111 section
/// 3.2 excludes `Content-Length`, and lets a cache exclude what its storage depends on.
fn is_kept(name: &[u8]) -> bool {
    name.starts_with(b":") || name == b"content-type" || ROWS.iter().any(|row| row.name.as_bytes() == name)
}

fn end_to_end<'f, 'v: 'f>(fields: &'f Fields<'v>) -> impl Iterator<Item = (&'v [u8], &'v [u8])> + 'f {
    let named: Vec<&[u8]> = fields.items("connection").collect();
    fields.iter().filter(move |(name, _)| {
        !HOP_BY_HOP.contains(name) && !named.iter().any(|other| other.eq_ignore_ascii_case(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<'a>(list: &[(&'a str, &'a str)]) -> Fields<'a> {
        list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    #[test]
    fn a_304_replaces_fields_but_not_those_of_the_body() {
        let stored = [
            (":status", "200"),
            ("content-type", "text/css"),
            ("content-length", "5"),
            ("etag", "\"a\""),
            ("cache-control", "max-age=1"),
            ("cache-control", "public"),
            ("age", "7"),
            ("date", "then"),
            ("x-old", "stays"),
        ];
        let fresh = [
            (":status", "304"),
            ("content-type", "text/html"),
            ("content-length", "0"),
            ("content-encoding", "gzip"),
            ("content-range", "bytes 0-1/2"),
            ("content-digest", "sha-256=:x:"),
            ("etag", "W/\"a\""),
            ("cache-control", "max-age=60"),
            ("date", "now"),
            ("x-new", "1"),
            ("x-new", "2"),
            ("connection", "x-hop"),
            ("x-hop", "y"),
        ];
        let expected = [
            (":status", "200"),
            ("content-type", "text/css"),
            ("content-length", "5"),
            ("etag", "\"a\""),
            ("x-old", "stays"),
            ("cache-control", "max-age=60"),
            ("date", "now"),
            ("x-new", "1"),
            ("x-new", "2"),
        ];
        assert_eq!(updated(&fields(&stored), &fields(&fresh)), fields(&expected).to_list());
    }

    #[test]
    fn a_304_without_age_or_date_makes_the_response_new() {
        let stored = fields(&[("age", "7"), ("date", "then"), ("x", "y")]);
        assert_eq!(updated(&stored, &Fields::default()), fields(&[("x", "y")]).to_list());
        let aged = fields(&[("age", "3")]);
        assert_eq!(updated(&stored, &aged), fields(&[("x", "y"), ("age", "3")]).to_list());
    }

    #[test]
    fn a_304_that_sets_a_cookie_ends_the_storage() {
        let stored = fields(&[(":status", "200"), ("etag", "\"a\"")]);
        let after = |fresh: &[(&str, &str)]| {
            let list = updated(&stored, &fields(fresh));
            let pairs: Fields<'_> = list.iter().map(|(name, value)| (&name[..], &value[..])).collect();
            crate::storable(&Fields::default(), &pairs, 0, 0).map(|life| life.lifetime_s)
        };
        assert_eq!(after(&[("cache-control", "max-age=5")]), Ok(5));
        assert_eq!(after(&[("cache-control", "max-age=5"), ("set-cookie", "a=b")]), Err(crate::Past::SetCookie));
        assert_eq!(after(&[("cache-control", "private")]), Err(crate::Past::Private));
    }

    #[test]
    fn a_304_fits_by_its_tag_else_by_its_date() {
        for (stored, fresh, expected) in [
            (&[("etag", "\"a\"")][..], &[("etag", "\"a\"")][..], true),
            (&[("etag", "W/\"a\"")], &[("etag", "\"a\"")], true),
            (&[("etag", "\"a\"")], &[("etag", "W/\"a\"")], true),
            (&[("etag", "\"a\"")], &[("etag", "a")], true),
            (&[("etag", "\"a\"")], &[("etag", "\"b\"")], false),
            (&[("last-modified", "x")], &[("etag", "\"b\""), ("last-modified", "x")], false),
            (&[("last-modified", "x")], &[("last-modified", "x")], true),
            (&[("last-modified", "x")], &[("last-modified", "y")], false),
            (&[("etag", "\"a\"")], &[("last-modified", "y")], false),
            (&[("etag", "\"a\"")], &[], true),
        ] {
            assert_eq!(matches(&fields(stored), &fields(fresh)), expected, "{stored:?} {fresh:?}");
        }
    }

    #[test]
    fn fields_of_one_connection_go_with_those_that_it_names() {
        let list = fields(&[
            ("connection", "close, X-One"),
            ("x-one", "1"),
            ("x-two", "2"),
            ("transfer-encoding", "chunked"),
            ("keep-alive", "timeout=5"),
            ("etag", "\"a\""),
        ]);
        assert_eq!(without_hop_by_hop(&list), fields(&[("x-two", "2"), ("etag", "\"a\"")]).to_list());
    }
}
