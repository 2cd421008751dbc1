//! The path under which the cache stores a variant, beside the origin's image.

/// The first segment of the path of a variant.
pub const PREFIX: &[u8] = b"/.lh-webp";

/// On a request between Longhaul's own hops: the path has the [`PREFIX`]. The value is the origin's path, for logs. A path
/// alone proves nothing, because an origin may have such a path itself.
pub const MARK: &str = "x-longhaul-image";

/// Returns the path of the variant. Returns None for a path that is not absolute.
pub fn of(path: &[u8]) -> Option<Vec<u8>> {
    path.starts_with(b"/").then(|| [PREFIX, path].concat())
}

/// Returns the origin's path. Returns None if the path is no variant's.
pub fn origin(path: &[u8]) -> Option<&[u8]> {
    path.strip_prefix(PREFIX).filter(|rest| rest.starts_with(b"/"))
}

/// Returns true for a path under which variants lie. An origin that has such a path must not fill the place of a variant.
pub fn is_reserved(path: &[u8]) -> bool {
    path.starts_with(PREFIX)
}

/// Returns the URL as a client requests it, and true if `url` is a variant's. `url` begins with a scheme and a host.
pub fn client_url(url: &[u8]) -> (Vec<u8>, bool) {
    let after_scheme = url.windows(3).position(|three| three == b"://").map_or(url.len(), |at| at + 3);
    let (scheme, rest) = url.split_at_checked(after_scheme).unwrap_or((url, b""));
    let (host, path) =
        rest.split_at_checked(rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len())).unwrap_or((rest, b""));
    origin(path).map_or_else(|| (url.to_vec(), false), |path| ([scheme, host, path].concat(), true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_origins_path_comes_back(path in "/[ -~]{0,40}") {
            let variant = of(path.as_bytes()).unwrap();
            prop_assert_eq!(origin(&variant), Some(path.as_bytes()));
        }
    }

    #[test]
    fn a_url_of_a_variant_is_shown_as_its_client_requests_it() {
        for (url, expected) in [
            ("http://a.example/.lh-webp/b.jpg?c", ("http://a.example/b.jpg?c", true)),
            ("http://a.example/b.jpg", ("http://a.example/b.jpg", false)),
            ("http://a.example/b/.lh-webp/c", ("http://a.example/b/.lh-webp/c", false)),
            ("http://a.example", ("http://a.example", false)),
            ("", ("", false)),
        ] {
            assert_eq!(client_url(url.as_bytes()), (expected.0.as_bytes().to_vec(), expected.1), "{url}");
        }
    }

    #[test]
    fn other_paths_are_no_variants() {
        assert_eq!(of(b"*"), None);
        for path in [&b"/"[..], b"/.lh-webp", b"/.lh-webpx/a", b"/x/.lh-webp/a", b""] {
            assert_eq!(origin(path), None, "{path:?}");
        }
    }
}
