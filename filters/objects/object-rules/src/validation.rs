//! A validation that comes before it is requested. The ground of a pair sends the fields of a 304 with the objects of a page.
//! The cache of the remote renews its stored response by them.

use http_semantics::{FieldList, Fields};

/// The fields of a 304 (RFC 9110 section 15.4.5), and those by which a cache computes the age of the response.
const FIELDS: [&str; 8] =
    ["age", "cache-control", "content-location", "date", "etag", "expires", "last-modified", "vary"];

/// Returns the lines of a 304 for this response of an origin or a cache.
pub fn lines(response: &Fields<'_>) -> Vec<u8> {
    let known = response.iter().filter(|(name, _)| is_known(name));
    known.flat_map(|(name, value)| [name, b":", value, b"\n"].concat()).collect()
}

/// Returns the fields in such lines. Other fields are left out, and so are lines without a name.
pub fn fields(lines: &[u8]) -> FieldList {
    let pairs = lines.split(|&byte| byte == b'\n').filter_map(|line| {
        let (name, value) = line.split_at_checked(line.iter().position(|&byte| byte == b':')?)?;
        Some((name.to_vec(), value.get(1..)?.to_vec()))
    });
    pairs.filter(|(name, _)| is_known(name)).collect()
}

fn is_known(name: &[u8]) -> bool {
    FIELDS.iter().any(|known| known.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_304_come_back_and_no_others() {
        let response: Fields<'_> = [
            (&b":status"[..], &b"200"[..]),
            (b"etag", b"\"a:b\""),
            (b"content-length", b"5"),
            (b"cache-control", b"max-age=5"),
            (b"cache-control", b"public"),
            (b"set-cookie", b"a=b"),
        ]
        .into_iter()
        .collect();
        let kept: Vec<_> = [("etag", "\"a:b\""), ("cache-control", "max-age=5"), ("cache-control", "public")]
            .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
            .into();
        assert_eq!(fields(&lines(&response)), kept);
    }

    #[test]
    fn lines_that_are_no_fields_are_left_out() {
        assert_eq!(fields(b"etag\n:\nset-cookie:a=b\n\ndate:x"), [(b"date".to_vec(), b"x".to_vec())]);
    }
}
