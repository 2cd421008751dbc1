//! Header fields of a response whose body is decompressed.

use http_semantics::body_fields::{self, Change, gone};
pub(crate) use http_semantics::content_encoding::{codings, is_br, is_gzip};
use http_semantics::{Edit, Fields};

/// Returns the changes that make the fields of a compressed response those of the decompressed response. The
/// decompressed body is another representation, so its tag is weak (RFC 9110 section 8.8.1).
pub fn edits(response: &Fields<'_>) -> Vec<Edit> {
    let mut edits = removals(response, Change::Decoding);
    edits.extend(response.get("etag").and_then(weakened));
    if !response.items("vary").any(|item| item == b"*" || item.eq_ignore_ascii_case(b"accept-encoding")) {
        let mut named: Vec<&[u8]> = response.items("vary").collect();
        named.push(b"Accept-Encoding");
        edits.push(Edit::Set("vary", named.join(&b", "[..])));
    }
    edits
}

/// Returns the changes for a page that was decoded from a delta. The page is the very bytes that its other fields
/// describe.
pub(crate) fn of_decoded_delta(response: &Fields<'_>) -> Vec<Edit> {
    removals(response, Change::Transport)
}

fn removals(response: &Fields<'_>, change: Change) -> Vec<Edit> {
    gone(change).filter(|name| response.has(name)).map(Edit::remove).collect()
}

/// Returns the change that makes the tag weak. None if it is weak already.
pub(crate) fn weakened(tag: &[u8]) -> Option<Edit> {
    body_fields::weakened(tag).map(|tag| Edit::Set("etag", tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &[(&'static str, &'static str)]) -> Fields<'static> {
        list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    #[test]
    fn fields_of_the_compressed_bytes_go_and_the_rest_stays() {
        let response = of(&[
            (":status", "200"),
            ("content-encoding", "br"),
            ("content-length", "7"),
            ("etag", "\"x\""),
            ("content-type", "text/html"),
            ("vary", "Origin"),
        ]);
        let expected = [
            Edit::remove("content-length"),
            Edit::remove("content-encoding"),
            Edit::Set("etag", b"W/\"x\"".to_vec()),
            Edit::Set("vary", b"Origin, Accept-Encoding".to_vec()),
        ];
        assert_eq!(edits(&response), expected);
    }

    #[test]
    fn a_weak_tag_and_a_vary_that_says_it_stay() {
        for vary in ["*", "origin,  Accept-encoding"] {
            let response = of(&[("content-encoding", "br"), ("etag", "W/\"x\""), ("vary", vary)]);
            assert_eq!(edits(&response), [Edit::remove("content-encoding")], "{vary}");
        }
    }
}
