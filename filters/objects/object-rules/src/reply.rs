//! The response to a request that a stored one serves: whole, in part, or "not modified".

use std::borrow::Cow;
use std::ops::Range;

use http_semantics::Fields;

use crate::conditions;
use crate::multipart::Multipart;
use crate::ranges::{self, Ranges};

/// A piece of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A part of the stored body.
    Stored(Range<u64>),
}

/// A response without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The status. 0 if the stored response has none.
    pub status: u16,
    /// The fields, without pseudo-header fields.
    pub fields: Vec<(&'a [u8], Cow<'a, [u8]>)>,
    /// The body. It is empty for HEAD.
    pub body: Vec<Piece>,
}

/// Returns the response to `request`, which may have the stored one ([`crate::Life::allows`]). `stored` has `:status`, but
/// neither `age` nor `content-length`. Its body has `length` bytes. `chance` draws a random number for the boundary of parts.
pub fn reply<'a>(
    request: &Fields<'_>,
    stored: &Fields<'a>,
    length: u64,
    age_s: u64,
    chance: impl FnOnce() -> u128,
) -> Reply<'a> {
    let fields = stored.iter().filter(|(name, _)| !name.starts_with(b":"));
    let fields = fields.map(|(name, value)| (name, Cow::Borrowed(value))).collect();
    let mut reply = Reply { status: stored.status(), fields, body: Vec::new() };
    reply.set(b"age", age_s.to_string());
    if reply.status == 200 && conditions::not_modified(request, stored) {
        reply.status = 304;
        return reply;
    }
    match ranges::requested(request, stored, length) {
        // A server may ignore ranges. The caller has asked the origin for those that are the origin's.
        Ranges::Whole | Ranges::Origins => reply.body.push(Piece::Stored(0..length)),
        Ranges::Parts(parts) => {
            reply.status = 206;
            if let [part] = parts.as_slice() {
                let range = ranges::content_range(part.start, part.end.saturating_sub(1), length);
                reply.set(b"content-range", range);
                reply.body.push(Piece::Stored(part.clone()));
            } else {
                reply.several(&Multipart::new(chance(), stored.get("content-type")), &parts, length);
            }
        }
    }
    // RFC 9110 section 8.6.
    if !matches!(reply.status, 204 | 304) {
        reply.set(b"content-length", reply.body.iter().map(Piece::length).fold(0, u64::saturating_add).to_string());
    }
    if request.get(":method") == Some(b"HEAD") {
        reply.body.clear();
    }
    reply
}

impl Piece {
    fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Stored(range) => range.end.saturating_sub(range.start),
        }
    }
}

impl<'a> Reply<'a> {
    fn set(&mut self, name: &'a [u8], value: String) {
        self.fields.retain(|(known, _)| *known != name);
        self.fields.push((name, Cow::Owned(value.into_bytes())));
    }

    fn several(&mut self, frame: &Multipart, parts: &[Range<u64>], total: u64) {
        self.set(b"content-type", frame.content_type());
        for part in parts {
            self.body.extend([Piece::Bytes(frame.head(part, total)), Piece::Stored(part.clone())]);
        }
        self.body.push(Piece::Bytes(frame.end()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORED: [(&str, &str); 4] =
        [(":status", "200"), ("content-type", "text/plain"), ("etag", "\"a\""), ("x", "y")];

    fn fields<'a>(list: &[(&'a str, &'a str)]) -> Fields<'a> {
        list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    fn of<'a>(request: &[(&str, &str)], stored: &[(&'a str, &'a str)]) -> Reply<'a> {
        reply(&fields(request), &fields(stored), 10, 7, || 1)
    }

    fn value(reply: &Reply<'_>, name: &str) -> Option<String> {
        let mut found = reply.fields.iter().filter(|(known, _)| *known == name.as_bytes());
        let value = found.next().map(|(_, value)| String::from_utf8_lossy(value).into_owned());
        assert_eq!(found.next(), None, "{name} is there once");
        value
    }

    #[test]
    fn a_request_gets_the_whole_a_part_or_nothing_new() {
        for (request, status, length, range, body) in [
            (&[][..], 200, Some("10"), None, vec![Piece::Stored(0..10)]),
            (&[(":method", "HEAD")], 200, Some("10"), None, vec![]),
            (&[("range", "bytes=2-3")], 206, Some("2"), Some("bytes 2-3/10"), vec![Piece::Stored(2..4)]),
            (&[("range", "bytes=10-")], 200, Some("10"), None, vec![Piece::Stored(0..10)]),
            (&[("range", "bytes=2-3"), ("if-range", "\"b\"")], 200, Some("10"), None, vec![Piece::Stored(0..10)]),
            (&[("if-none-match", "\"a\"")], 304, None, None, vec![]),
        ] {
            let reply = of(request, &STORED);
            assert_eq!((reply.status, &reply.body), (status, &body), "{request:?}");
            assert_eq!(value(&reply, "content-length").as_deref(), length, "{request:?}");
            assert_eq!(value(&reply, "content-range").as_deref(), range, "{request:?}");
            assert_eq!((value(&reply, "age").unwrap(), value(&reply, "x").unwrap()), ("7".into(), "y".into()));
            assert_eq!(value(&reply, ":status"), None);
        }
    }

    #[test]
    fn several_parts_have_one_type_and_their_exact_length() {
        let reply = of(&[("range", "bytes=0-1, 8-9")], &STORED);
        let own: u64 = reply.body.iter().map(Piece::length).sum();
        assert_eq!((reply.status, reply.body.len()), (206, 5));
        assert_eq!(value(&reply, "content-length"), Some(own.to_string()));
        assert!(value(&reply, "content-type").unwrap().starts_with("multipart/byteranges; boundary=0"));
    }

    #[test]
    fn a_status_without_a_body_has_no_length_and_an_error_stays_one() {
        assert_eq!(value(&of(&[], &[(":status", "204")]), "content-length"), None);
        let error = of(&[("if-none-match", "*"), ("range", "bytes=0-1")], &[(":status", "404")]);
        assert_eq!((error.status, error.body), (404, vec![Piece::Stored(0..10)]));
    }
}
