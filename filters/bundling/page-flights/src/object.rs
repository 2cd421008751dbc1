//! Decides which objects any client may receive, and encodes them.
//!
//! The ground fetches an object once, without credentials. The remote serves it to any client that requests it on
//! behalf of the page. That is right only if the origin would have sent the same response to each of them. So a
//! response that indicates otherwise is not sent.

use std::time::{Duration, SystemTime};

use http_semantics::{FieldList, Fields, Freshness, Purpose, Unshared, shareable};
use pipe_encoding::accept::takes;
use pipe_encoding::codings;

use crate::digest::{Ident, ident};
use crate::fields::media_type;
use crate::limits;
use crate::wire::{Malformed, Reader, put_bytes};

/// The reason why an object is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// No response, or a status that describes only the moment. The next attempt may succeed.
    Failed,
    /// Another status than 200, or a policy for another kind of cache. The browser must handle the response itself.
    Status,
    /// A page. Browsers load one inside another page only in a frame.
    Type,
    /// A field by which the site recognises the client, such as `Set-Cookie`.
    Cookie,
    /// `Cache-Control: private` or `no-store`.
    Private,
    /// `Vary` names more than `Accept-Encoding`.
    Vary,
    /// A content encoding that neither the browser nor the remote decompresses, or several.
    Encoding,
    /// A body or headers beyond the limits.
    Size,
}

impl Unfit {
    /// Returns true if the object would be unfit for the next visitor as well. A reason that lies in the network or in
    /// one visitor's browser is no lesson.
    pub(crate) fn is_lesson(self) -> bool {
        match self {
            Self::Failed | Self::Encoding => false,
            Self::Status | Self::Type | Self::Cookie | Self::Private | Self::Vary | Self::Size => true,
        }
    }
}

/// Returns true for a status that describes the moment (RFC 9110, 15.5.9, 15.6; RFC 6585, 4; RFC 8470, 5.2). The
/// origin, or a proxy before it, may succeed the next time. Status 0 means that there was none.
fn is_passing(status: u16) -> bool {
    matches!(status, 0 | 408 | 425 | 429 | 500..=599)
}

/// An object to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) ident: Ident,
    /// Headers that last as long as the object.
    pub(crate) head: Vec<u8>,
    /// Headers of this response alone.
    pub(crate) moment: Vec<u8>,
    pub(crate) body: Vec<u8>,
    /// True if compression pays: text without a content encoding.
    pub(crate) is_text: bool,
}

/// Headers about the connection of the response, not about the object. Each response gets its own `Content-Length`.
const OF_THE_WAY: [&[u8]; 10] = [
    b"connection",
    b"content-length",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
    b"alt-svc",
];

/// Returns true for headers that proxies send to each other. An origin has no say in them.
fn is_of_proxies(name: &[u8]) -> bool {
    name.starts_with(b"x-envoy-") || name.starts_with(b"x-longhaul-")
}

/// Headers that differ between responses with the same object.
const OF_THE_MOMENT: [&[u8]; 3] = [b"date", b"age", b"expires"];

/// Returns the object in a response to a request without credentials. `accepted` lists the content encodings that the
/// browser accepts, or the remote for it.
pub(crate) fn judge(fields: &Fields<'_>, body: &[u8], accepted: &[u8]) -> Result<Object, Unfit> {
    let codings: Vec<&[u8]> = codings(fields).collect();
    if is_passing(fields.status()) {
        return Err(Unfit::Failed);
    }
    shared(fields)?;
    if matches!(media_type(fields).as_slice(), b"text/html" | b"application/xhtml+xml") {
        return Err(Unfit::Type);
    }
    match codings.as_slice() {
        [] => {}
        [encoding] if takes(accepted, encoding) => {}
        _ => return Err(Unfit::Encoding),
    }
    let (mut head, mut moment) = (Vec::new(), Vec::new());
    for (name, value) in fields.iter() {
        if name.starts_with(b":") || OF_THE_WAY.contains(&name) || is_of_proxies(name) {
            continue;
        }
        let part = if OF_THE_MOMENT.contains(&name) { &mut moment } else { &mut head };
        put_bytes(part, name);
        put_bytes(part, value);
    }
    if body.len() > limits::OBJECT_BYTES || head.len() + moment.len() > limits::HEAD_BYTES {
        return Err(Unfit::Size);
    }
    let is_text = codings.is_empty() && is_text(&media_type(fields));
    Ok(Object { ident: ident(&head, body), head, moment, body: body.to_vec(), is_text })
}

fn is_text(media_type: &[u8]) -> bool {
    let ends = |tail: &[u8]| media_type.ends_with(tail);
    media_type.starts_with(b"text/") || ends(b"javascript") || ends(b"json") || ends(b"xml")
}

/// Decodes headers that [`judge`] encoded.
pub(crate) fn fields_of(head: &[u8], moment: &[u8]) -> Result<FieldList, Malformed> {
    let mut list = FieldList::new();
    for part in [head, moment] {
        let mut reader = Reader(part);
        while !reader.is_empty() {
            list.push((reader.bytes()?.to_vec(), reader.bytes()?.to_vec()));
        }
    }
    Ok(list)
}

/// Applies the rule that all of Longhaul shares to the response to a request without credentials. Neither the object's
/// age nor the time of day plays a part: see [`lasts`].
fn shared(fields: &Fields<'_>) -> Result<Freshness, Unfit> {
    shareable(Purpose::Push, &Fields::default(), fields, SystemTime::UNIX_EPOCH).map_err(|why| match why {
        Unshared::SetCookie => Unfit::Cookie,
        Unshared::NoStore | Unshared::Private => Unfit::Private,
        Unshared::Vary => Unfit::Vary,
        _ => Unfit::Status,
    })
}

/// Returns the time for which an object may be served after its arrival, by its own headers. `None` means that they do
/// not say.
pub(crate) fn lasts(fields: &Fields<'_>) -> Option<Duration> {
    let says = ["no-cache", "max-age", "s-maxage"].iter().any(|directive| fields.lists("cache-control", directive))
        || fields.lists("pragma", "no-cache")
        || fields.has("expires");
    // Objects are kept without their status, because only 200 is kept.
    let with_status = || [(&b":status"[..], &b"200"[..])].into_iter().chain(fields.iter()).collect();
    says.then(|| shared(&with_status()).map_or(Duration::ZERO, |freshness| Duration::from_secs(freshness.left)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_lasts_as_long_as_it_says() {
        let date = ("date", "Sat, 21 Nov 2026 13:00:00 GMT");
        for (fields, expected) in [
            (&[("etag", "\"x\"")][..], None),
            (&[("cache-control", "no-cache, max-age=60")], Some(0)),
            (&[("pragma", "no-cache")], Some(0)),
            (&[("cache-control", "max-age=0")], Some(0)),
            (&[("cache-control", "public, Max-Age=\"60\""), ("age", "50")], Some(10)),
            (&[("cache-control", "max-age=5, s-maxage=7")], Some(7)),
            (&[("cache-control", "max-age=soon")], Some(0)),
            (&[date, ("expires", "0")], Some(0)),
            (&[date, ("expires", "Sat, 21 Nov 2026 12:00:00 GMT")], Some(0)),
            (&[date, ("expires", "Sat, 21 Nov 2026 13:00:30 GMT")], Some(30)),
        ] {
            let list: Vec<(&[u8], &[u8])> =
                fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
            assert_eq!(lasts(&Fields::from(&list[..])), expected.map(Duration::from_secs), "{fields:?}");
        }
    }

    fn judged(fields: &[(&str, &str)], body: &[u8]) -> Result<Object, Unfit> {
        let list: Vec<(&[u8], &[u8])> =
            fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        judge(&Fields::from(&list[..]), body, b"gzip, deflate")
    }

    #[test]
    fn an_object_for_any_client_keeps_the_origins_headers() {
        let object = judged(
            &[
                (":status", "200"),
                ("date", "now"),
                ("content-type", "image/png"),
                ("content-length", "3"),
                ("etag", "\"x\""),
                ("vary", "Accept-Encoding"),
                ("cache-control", "max-age=60"),
                ("age", "10"),
                ("x-envoy-upstream-service-time", "3"),
                ("x-longhaul-retry", "1"),
            ],
            b"png",
        )
        .unwrap();
        let text = |(name, value): &(Vec<u8>, Vec<u8>)| {
            format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
        };
        let fields: Vec<_> = fields_of(&object.head, &object.moment).unwrap().iter().map(text).collect();
        let expected = [
            "content-type: image/png",
            "etag: \"x\"",
            "vary: Accept-Encoding",
            "cache-control: max-age=60",
            "date: now",
            "age: 10",
        ];
        assert_eq!(fields, expected);
        assert_eq!((object.is_text, &*object.body), (false, &b"png"[..]));
    }

    #[test]
    fn an_object_is_the_same_whenever_it_was_fetched_and_another_with_another_header() {
        let of =
            |date, etag| judged(&[(":status", "200"), ("date", date), ("etag", etag)], b"x").map(|object| object.ident);
        assert_eq!(of("today", "a"), of("tomorrow", "a"));
        assert_ne!(of("today", "a"), of("today", "b"));
    }

    #[test]
    fn empty_items_and_identity_are_no_content_encodings() {
        for encoding in ["", ",", "identity", "gzip,", " , GZIP"] {
            assert!(judged(&[(":status", "200"), ("content-encoding", encoding)], b"x").is_ok(), "{encoding}");
        }
        assert_eq!(judged(&[(":status", "200"), ("content-encoding", "br,")], b"x"), Err(Unfit::Encoding));
    }

    #[test]
    fn objects_for_some_clients_are_left_out() {
        for (name, value, why) in [
            (":status", "404", Unfit::Status),
            (":status", "206", Unfit::Status),
            (":status", "302", Unfit::Status),
            (":status", "503", Unfit::Failed),
            (":status", "429", Unfit::Failed),
            ("content-type", "text/html; charset=utf-8", Unfit::Type),
            ("set-cookie", "a=b", Unfit::Cookie),
            ("cache-control", "max-age=3, Private", Unfit::Private),
            ("cache-control", "no-store", Unfit::Private),
            ("cache-control", "private=\"x\"", Unfit::Private),
            ("vary", "accept-encoding, cookie", Unfit::Vary),
            ("vary", "*", Unfit::Vary),
            ("content-encoding", "br", Unfit::Encoding),
            ("content-encoding", "gzip, gzip", Unfit::Encoding),
        ] {
            let fields = if name == ":status" { vec![(name, value)] } else { vec![(":status", "200"), (name, value)] };
            assert_eq!(judged(&fields, b"x"), Err(why), "{name}: {value}");
        }
        let large = vec![0; limits::OBJECT_BYTES + 1];
        assert_eq!(judged(&[(":status", "200")], &large), Err(Unfit::Size));
        assert!(judged(&[(":status", "200"), ("content-encoding", "gzip")], b"x").is_ok());
    }
}
