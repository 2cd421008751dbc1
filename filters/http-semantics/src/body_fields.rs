//! Fields that describe the bytes or the encoding of a body. Each part that changes a body reads this table.
//!
//! | field | describes | source |
//! |---|---|---|
//! | `Content-Length` | the bytes of this message | RFC 9110 section 8.6 |
//! | `ETag` | the representation. A strong tag promises equal bytes | RFC 9110 section 8.8.3 |
//! | `Accept-Ranges` | the origin's bytes, of which it serves parts | RFC 9110 section 14.3 |
//! | `Content-Range` | the part of those bytes in this message | RFC 9110 section 14.4 |
//! | `Content-Encoding` | the encoding of the representation | RFC 9110 section 8.4 |
//! | `Content-MD5`, `Digest` | the encoded bytes | RFC 2616 section 14.15, RFC 3230 |
//! | `Content-Digest` | the encoded bytes of this message | RFC 9530 section 2 |
//! | `Repr-Digest` | the encoded bytes of the representation | RFC 9530 section 3 |
//! | `Unencoded-Digest` | the bytes without a content encoding. Browsers verify it | draft-ietf-httpbis-unencoded-digest |
//! | `Signature`, `Signature-Input` | other fields, often a digest | RFC 9421 |
//!
//! `Want-Content-Digest` and its kin state a preference and describe no body, so they always stay.
//!
//! A page that is rewritten loses `Unencoded-Digest` and its signature. Browsers then verify nothing, and the page works. An image
//! with any digest stays as it is: recoding saves bytes, and goal 1 comes before bytes.
//!
//! A partial response and any response to a request with `Range` are never encoded, decoded or rewritten ([`is_of_range`]).

use crate::Fields;

/// A change of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Other content takes the place of the content: URLs of a page are rewritten, or an image is recoded. The part that
    /// does it makes a tag of its own.
    Content,
    /// The same content gets a content encoding.
    Encoding,
    /// The same content loses its content encoding.
    Decoding,
    /// The same bytes arrive in another form on the pipe of a pair, and leave it as they were: deltas.
    Transport,
}

impl Change {
    /// Every change, in the order of the columns of [`ROWS`].
    pub const ALL: [Self; 4] = [Self::Content, Self::Encoding, Self::Decoding, Self::Transport];
}

/// The effect of a change on a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The field is still true.
    Stays,
    /// The tag becomes weak (RFC 9110 section 8.8.1).
    Weakens,
    /// The field would be untrue, so it is removed or gets a new value.
    Goes,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The name in lower case.
    pub name: &'static str,
    /// True for a digest of the body.
    pub is_digest: bool,
    fates: [Fate; 4],
}

impl Row {
    /// Returns the effect of a change on the field.
    pub const fn fate(&self, change: Change) -> Fate {
        let [content, encoding, decoding, transport] = self.fates;
        match change {
            Change::Content => content,
            Change::Encoding => encoding,
            Change::Decoding => decoding,
            Change::Transport => transport,
        }
    }
}

/// The table, one row per field.
pub const ROWS: [Row; 12] = {
    use Fate::{Goes, Stays, Weakens};
    const fn row(name: &'static str, fates: [Fate; 4]) -> Row {
        Row { name, is_digest: false, fates }
    }
    const fn digest(name: &'static str, fates: [Fate; 4]) -> Row {
        Row { name, is_digest: true, fates }
    }
    [
        //                         content encoding decoding transport
        row("content-length", [Goes, Goes, Goes, Goes]),
        row("content-encoding", [Goes, Goes, Goes, Goes]),
        row("etag", [Goes, Weakens, Weakens, Stays]),
        row("accept-ranges", [Goes, Goes, Goes, Stays]),
        row("content-range", [Goes, Goes, Goes, Stays]),
        digest("content-md5", [Goes, Goes, Goes, Stays]),
        digest("digest", [Goes, Goes, Goes, Stays]),
        digest("content-digest", [Goes, Goes, Goes, Stays]),
        digest("repr-digest", [Goes, Goes, Goes, Stays]),
        digest("unencoded-digest", [Goes, Stays, Stays, Stays]),
        row("signature", [Goes, Stays, Stays, Stays]),
        row("signature-input", [Goes, Stays, Stays, Stays]),
    ]
};

/// Iterates over the names of the fields that a change makes untrue. A part that gives `ETag` or `Content-Encoding` a new
/// value does so itself.
pub fn gone(change: Change) -> impl Iterator<Item = &'static str> {
    ROWS.iter().filter(move |row| row.fate(change) == Fate::Goes).map(|row| row.name)
}

/// Iterates over the names of the fields that a change makes untrue and that no compressor of Envoy removes or sets
/// itself. Envoy sets `Content-Encoding`, removes `Content-Length` and weakens `ETag`.
pub fn gone_beside_envoy(change: Change) -> impl Iterator<Item = &'static str> {
    gone(change).filter(|name| !matches!(*name, "content-length" | "content-encoding" | "etag"))
}

/// Returns true if a response has a digest of its body.
pub fn has_digest(response: &Fields<'_>) -> bool {
    ROWS.iter().any(|row| row.is_digest && response.has(row.name))
}

/// Returns true for a response whose bytes must stay the origin's: a partial one (206), a refused range (416), and any
/// response to a request with `Range` (RFC 9110 sections 14.2 and 15.3.7).
pub fn is_of_range(request_has_range: bool, status: u16) -> bool {
    request_has_range || matches!(status, 206 | 416)
}

/// Returns the weak form of a tag. None if it is weak already.
pub fn weakened(tag: &[u8]) -> Option<Vec<u8>> {
    (!tag.starts_with(b"W/")).then(|| [b"W/", tag].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(change: Change) -> Vec<&'static str> {
        gone(change).collect()
    }

    #[test]
    fn a_change_removes_what_it_makes_untrue_and_nothing_else() {
        let always = ["content-length", "content-encoding"];
        let encoded = ["accept-ranges", "content-range", "content-md5", "digest", "content-digest", "repr-digest"];
        let unencoded = ["unencoded-digest", "signature", "signature-input"];
        assert_eq!(of(Change::Content), [&always[..], &["etag"], &encoded, &unencoded].concat());
        for change in [Change::Encoding, Change::Decoding] {
            assert_eq!(of(change), [&always[..], &encoded].concat());
            assert_eq!(gone_beside_envoy(change).collect::<Vec<_>>(), encoded);
        }
        assert_eq!(of(Change::Transport), always);
    }

    #[test]
    fn every_digest_of_the_encoded_bytes_goes_with_every_encoding() {
        for row in ROWS.iter().filter(|row| row.is_digest) {
            let outlives = row.fate(Change::Encoding) == Fate::Stays;
            assert_eq!(outlives, row.name == "unencoded-digest", "{}", row.name);
            assert_eq!(row.fate(Change::Content), Fate::Goes, "{}", row.name);
        }
    }

    #[test]
    fn preferences_for_digests_describe_no_body() {
        assert!(ROWS.iter().all(|row| !row.name.starts_with("want-")));
    }

    #[test]
    fn only_a_strong_tag_is_weakened() {
        let tag = ROWS.iter().find(|row| row.name == "etag").unwrap();
        let fates = Change::ALL.map(|change| tag.fate(change));
        assert_eq!(fates, [Fate::Goes, Fate::Weakens, Fate::Weakens, Fate::Stays]);
        assert_eq!(weakened(b"\"a\"").unwrap(), b"W/\"a\"");
        assert_eq!(weakened(b"W/\"a\""), None);
    }

    #[test]
    fn ranges_are_known_by_request_and_by_status() {
        for (has_range, status, expected) in
            [(true, 200, true), (false, 206, true), (false, 416, true), (false, 200, false), (false, 404, false)]
        {
            assert_eq!(is_of_range(has_range, status), expected, "{status}");
        }
    }
}
