//! The path under which the cache stores a variant. Envoy's cache knows no `Vary`, so the path has to differ.

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
    fn other_paths_are_no_variants() {
        assert_eq!(of(b"*"), None);
        for path in [&b"/"[..], b"/.lh-webp", b"/.lh-webpx/a", b"/x/.lh-webp/a", b""] {
            assert_eq!(origin(path), None, "{path:?}");
        }
    }
}
