//! Derives the true URL of an object from its moved URL, if the browser will request exactly that URL.

use url_mapping::{Mapper, Reverse, Scheme};

/// The URL of an object at its origin, without fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrueUrl<'u> {
    pub(crate) scheme: Scheme,
    pub(crate) authority: &'u str,
    /// With its query.
    pub(crate) path: &'u str,
}

impl<'u> TrueUrl<'u> {
    /// Returns the true URL of `moved`. `None` if browsers would write the URL differently.
    pub(crate) fn of_moved(mapper: &Mapper, moved: &'u str) -> Option<Self> {
        let (authority, path) = parts(moved)?;
        let Reverse::Origin(origin) = mapper.reverse(authority.as_bytes(), path.as_bytes()) else { return None };
        let path = std::str::from_utf8(origin.path).ok().filter(|path| is_spelled_as_sent(path))?;
        Some(Self { scheme: origin.scheme, authority: origin.authority, path })
    }
}

/// Returns authority and path of a moved URL, without its fragment.
fn parts(url: &str) -> Option<(&str, &str)> {
    let (_, rest) = url.split_once("://")?;
    let rest = rest.split('#').next()?;
    let slash = rest.find('/')?;
    rest.split_at_checked(slash)
}

/// Returns true if a browser sends the path and query as they are written. They hold no character that it would encode
/// (URL, "path percent-encode set" and "special-query percent-encode set"), and no `.` or `..` between slashes.
fn is_spelled_as_sent(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?@!$&()*+,;=%[]".contains(&byte);
    let dots = |segment: &str| {
        matches!(segment.len(), 1..=6)
            && matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
    };
    path.bytes().all(plain) && !path.split('?').next().unwrap_or_default().split('/').any(dots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_a_browser_would_write_differently_is_recognised() {
        for path in ["/", "/a.png?v=1&w=%20", "/.well-known/x", "/a..b/...", "/a?../x"] {
            assert!(is_spelled_as_sent(path), "{path}");
        }
        for path in ["/a b", "/ü", "/a/../b", "/a/.", "/%2E%2e/b", "/a'", "/a\"", "/{x}", "/a|b", "/a\\b"] {
            assert!(!is_spelled_as_sent(path), "{path}");
        }
    }

    #[test]
    fn a_moved_url_is_taken_apart() {
        assert_eq!(
            parts("https://pep.example.net/a.example:443/x?y#z"),
            Some(("pep.example.net", "/a.example:443/x?y"))
        );
        assert_eq!(parts("https://pep.example.net"), None);
    }
}
