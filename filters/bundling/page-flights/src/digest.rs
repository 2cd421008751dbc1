//! Names of URLs and of objects, resistant to collisions.

use sha2::{Digest, Sha256};

/// The name of a flight. It is unguessable, so only the remote that opened the flight can request its parcels.
pub(crate) type FlightId = [u8; 16];
/// The name of a URL in the manifest of one flight.
pub(crate) type Mark = [u8; 16];
/// The name of an object: a hash of its lasting headers and its body.
pub(crate) type Ident = [u8; 24];

fn first<const N: usize>(hash: &[u8]) -> [u8; N] {
    hash.first_chunk::<N>().copied().unwrap_or([0; N])
}

/// Returns the mark of `url` in the flight `id`. The flight's name is a salt: nobody can compute a mark beforehand.
pub(crate) fn mark(id: &FlightId, url: &str) -> Mark {
    first(&Sha256::new().chain_update(id).chain_update(url).finalize())
}

/// Returns the mark of an object in the flight `id`. `site` is the mark of the root URL of the page or style sheet that
/// names the object.
pub(crate) fn object_mark(id: &FlightId, site: &Mark, url: &str) -> Mark {
    first(&Sha256::new().chain_update(id).chain_update(site).chain_update(url).finalize())
}

/// Returns the root URL of the site that `url` is on. As `Referer`, other sites receive no more than this root
/// (<https://www.w3.org/TR/referrer-policy/>, strict-origin-when-cross-origin).
pub(crate) fn root(url: &str) -> &str {
    let host_at = "http://".len();
    let path_at = url.get(host_at..).and_then(|rest| rest.find('/'));
    path_at.and_then(|at| url.get(..=host_at + at)).unwrap_or(url)
}

/// Returns the host and port of an http URL.
pub(crate) fn authority(url: &str) -> &str {
    let rest = url.strip_prefix("http://").unwrap_or_default();
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Returns the path of an http URL, with its query.
pub(crate) fn path(url: &str) -> &str {
    url.strip_prefix("http://").and_then(|rest| rest.get(authority(url).len()..)).unwrap_or_default()
}

/// Returns the name of an object. The hash covers the length of `head`, so that no byte can move between head and body.
pub(crate) fn ident(head: &[u8], body: &[u8]) -> Ident {
    let length = u64::try_from(head.len()).unwrap_or(u64::MAX).to_le_bytes();
    first(&Sha256::new().chain_update(length).chain_update(head).chain_update(body).finalize())
}

/// Returns a key of eight bytes for `text`, for uses where a collision costs only speed.
pub(crate) fn key(text: &[u8]) -> u64 {
    u64::from_le_bytes(first(&Sha256::digest(text)))
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
}
