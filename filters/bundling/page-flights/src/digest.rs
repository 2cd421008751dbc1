//! Names of URLs and of objects that nobody can make collide.

use sha2::{Digest, Sha256};

/// A flight's name: unguessable, so that only who opened it can ask for its parcels.
pub(crate) type FlightId = [u8; 16];
/// A URL in the manifest of one flight.
pub(crate) type Mark = [u8; 16];
/// An object: status, lasting headers and body.
pub(crate) type Ident = [u8; 24];

fn first<const N: usize>(hash: &[u8]) -> [u8; N] {
    hash.first_chunk::<N>().copied().unwrap_or([0; N])
}

/// The mark of `url` in the flight `id`, which keeps it from being guessed beforehand.
pub(crate) fn mark(id: &FlightId, url: &str) -> Mark {
    first(&Sha256::new().chain_update(id).chain_update(url).finalize())
}

/// The mark of an object in the flight `id`: `site` is the mark of the root that its request's `Referer` has.
pub(crate) fn object_mark(id: &FlightId, site: &Mark, url: &str) -> Mark {
    first(&Sha256::new().chain_update(id).chain_update(site).chain_update(url).finalize())
}

/// The root of the site that `url` is on, which is all that other sites are told of a page
/// (<https://www.w3.org/TR/referrer-policy/>, strict-origin-when-cross-origin).
pub(crate) fn root(url: &str) -> &str {
    let host_at = "http://".len();
    let path_at = url.get(host_at..).and_then(|rest| rest.find('/'));
    path_at.and_then(|at| url.get(..=host_at + at)).unwrap_or(url)
}

/// The host and port of a URL over http.
pub(crate) fn authority(url: &str) -> &str {
    let rest = url.strip_prefix("http://").unwrap_or_default();
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// The name of an object.
pub(crate) fn ident(head: &[u8], body: &[u8]) -> Ident {
    let length = u64::try_from(head.len()).unwrap_or(u64::MAX).to_le_bytes();
    first(&Sha256::new().chain_update(length).chain_update(head).chain_update(body).finalize())
}

/// A key of eight bytes for `text`, where a collision costs only speed.
pub(crate) fn key(text: &[u8]) -> u64 {
    u64::from_le_bytes(first(&Sha256::digest(text)))
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes of `text`, if it is pairs of hexadecimal digits.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|_| pair.len() == 2)?, 16).ok()).collect()
}

/// As [`unhex`], for a name of known length.
pub(crate) fn unhex_array<const N: usize>(text: &str) -> Option<[u8; N]> {
    unhex(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_named_by_head_and_body_and_where_they_part() {
        assert_eq!(ident(b"ab", b"c"), ident(b"ab", b"c"));
        assert_ne!(ident(b"ab", b"c"), ident(b"a", b"bc"));
        assert_ne!(mark(&[1; 16], "http://a.example/"), mark(&[2; 16], "http://a.example/"));
    }

    #[test]
    fn hexadecimal_reads_back_and_nothing_else_does() {
        assert_eq!(unhex(&hex(&[0, 0x9f, 255])), Some(vec![0, 0x9f, 255]));
        assert_eq!(unhex_array::<2>("00ff"), Some([0, 255]));
        for bad in ["0", "0g", "é0", "000"] {
            assert_eq!(unhex_array::<1>(bad), None, "{bad}");
        }
    }
}
