//! The shape of a reference, found without allocation for the forms that are common in pages.
//!
//! All other forms go to the WHATWG parser: tabs and newlines inside, backslashes, dot segments, and `http:` with too
//! few or too many slashes. Such references are valid and rare.

use crate::base::Scheme;
use memchr::{memchr, memchr2, memchr2_iter, memchr3};

/// The shape of a reference. Leading and trailing control characters and spaces do not count (WHATWG URL, basic URL
/// parser).
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shape<'a> {
    /// Empty.
    Empty,
    /// Only a fragment, `#...`.
    Fragment,
    /// Any scheme except http and https: `data:`, `blob:`, `mailto:` and others.
    OtherScheme,
    /// `http://AUTHORITY REST`, `https://...` or, without a scheme, `//...`. `rest` is empty or starts with `/`, `?` or
    /// `#`, and has no dot segment.
    Absolute { scheme: Option<Scheme>, authority: &'a str, rest: &'a str },
    /// `path`, `/path` or `?query` on the base's authority. If `plain`, it has no dot segment and does not begin with
    /// `/`, so it resolves below the last slash of any base.
    Relative { plain: bool },
    /// A form that needs the parser.
    Odd,
}

impl<'a> Shape<'a> {
    pub(crate) fn of(reference: &'a str) -> Self {
        let reference = trim(reference);
        let bytes = reference.as_bytes();
        let Some(&first) = bytes.first() else { return Self::Empty };
        if memchr3(b'\t', b'\n', b'\r', bytes).is_some() {
            return Self::Odd;
        }
        if first == b'#' {
            return Self::Fragment;
        }
        if let Some(after) = strip_prefix_ignoring_case(reference, "http://") {
            return Self::absolute(Some(Scheme::Http), after);
        }
        if let Some(after) = strip_prefix_ignoring_case(reference, "https://") {
            return Self::absolute(Some(Scheme::Https), after);
        }
        if let Some(after) = reference.strip_prefix("//") {
            return Self::absolute(None, after);
        }
        match scheme_of(reference) {
            // Without the two slashes the meaning depends on the base.
            Some(scheme) if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") => Self::Odd,
            Some(_) => Self::OtherScheme,
            None => match PathShape::of(reference) {
                PathShape::Backslash => Self::Odd,
                PathShape::DotSegment => Self::Relative { plain: false },
                PathShape::Plain => Self::Relative { plain: first != b'/' },
            },
        }
    }

    fn absolute(scheme: Option<Scheme>, after: &'a str) -> Self {
        let end = after.bytes().position(|byte| matches!(byte, b'/' | b'?' | b'#' | b'\\')).unwrap_or(after.len());
        match after.split_at_checked(end) {
            Some((authority, rest)) if !authority.is_empty() && PathShape::of(rest) == PathShape::Plain => {
                Self::Absolute { scheme, authority, rest }
            }
            _ => Self::Odd,
        }
    }
}

/// The unusual elements of a path, found without splitting most paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathShape {
    Plain,
    /// A segment `.` or `..`; `%2e` also counts as a dot.
    DotSegment,
    Backslash,
}

impl PathShape {
    fn of(rest: &str) -> Self {
        let path = path_of(rest);
        if memchr(b'\\', path.as_bytes()).is_some() {
            return Self::Backslash;
        }
        // Almost no path has a segment that begins with a dot or a percent sign.
        let begins_segment = |at: usize| at == 0 || path.as_bytes().get(at - 1) == Some(&b'/');
        let suspicious = memchr2_iter(b'.', b'%', path.as_bytes()).any(begins_segment);
        if suspicious && path.split('/').any(is_dot_segment) { Self::DotSegment } else { Self::Plain }
    }
}

/// Removes the leading and trailing C0 controls and spaces that browsers drop.
pub(crate) fn trim(reference: &str) -> &str {
    reference.trim_matches(|character| character <= ' ')
}

/// Returns the scheme, if the reference begins with one.
fn scheme_of(reference: &str) -> Option<&str> {
    let end = reference
        .bytes()
        .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')))
        .filter(|&end| reference.as_bytes().get(end) == Some(&b':'))?;
    reference.get(..end).filter(|scheme| scheme.starts_with(|first: char| first.is_ascii_alphabetic()))
}

/// Returns true if the reference begins with a scheme that is neither http nor https.
pub(crate) fn has_other_scheme(reference: &str) -> bool {
    scheme_of(reference).is_some_and(|scheme| Scheme::from_name(scheme.to_ascii_lowercase().as_bytes()).is_none())
}

/// Returns the part before the first `?` or `#`.
pub(crate) fn path_of(rest: &str) -> &str {
    memchr2(b'?', b'#', rest.as_bytes()).and_then(|end| rest.get(..end)).unwrap_or(rest)
}

fn is_dot_segment(segment: &str) -> bool {
    let mut rest = segment;
    for dots in 0..3 {
        if rest.is_empty() {
            return dots > 0;
        }
        rest = match rest.strip_prefix('.').or_else(|| strip_prefix_ignoring_case(rest, "%2e")) {
            Some(after) => after,
            None => return false,
        };
    }
    false
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_that_pages_use_are_recognised_without_a_parser() {
        let absolute = |scheme, authority, rest| Shape::Absolute { scheme, authority, rest };
        for (reference, shape) in [
            ("", Shape::Empty),
            ("  \t ", Shape::Empty),
            ("#top", Shape::Fragment),
            (" #top", Shape::Fragment),
            ("data:image/gif;base64,AAAA", Shape::OtherScheme),
            ("javascript:void(0)", Shape::OtherScheme),
            ("http://i.cnn.net/plane.jpg", absolute(Some(Scheme::Http), "i.cnn.net", "/plane.jpg")),
            ("HTTPS://i.cnn.net:81?x#y", absolute(Some(Scheme::Https), "i.cnn.net:81", "?x#y")),
            (" //i.cnn.net ", absolute(None, "i.cnn.net", "")),
            ("//i.cnn.net/a?b=/../c", absolute(None, "i.cnn.net", "/a?b=/../c")),
            ("//i.cnn.net/.well-known/x", absolute(None, "i.cnn.net", "/.well-known/x")),
            ("plane.jpg", Shape::Relative { plain: true }),
            ("a/b:c.jpg", Shape::Relative { plain: true }),
            ("1:2", Shape::Relative { plain: true }),
            ("?page=../2", Shape::Relative { plain: true }),
            ("/plane.jpg", Shape::Relative { plain: false }),
            ("../plane.jpg", Shape::Relative { plain: false }),
            ("a/%2E./plane.jpg", Shape::Relative { plain: false }),
            ("...", Shape::Relative { plain: true }),
        ] {
            assert_eq!(Shape::of(reference), shape, "{reference:?}");
        }
    }

    #[test]
    fn forms_that_mean_something_unexpected_go_to_the_parser() {
        for reference in [
            "http:plane.jpg",
            "http:/plane.jpg",
            "http:///plane.jpg",
            "https:\\\\i.cnn.net",
            "//",
            "///x",
            "\\\\i.cnn.net\\x",
            "/\\x",
            "a\nb",
            "ht\ttp://i.cnn.net",
            "http://i.cnn.net\\x",
            "http://i.cnn.net/../x",
            "http://i.cnn.net/a/%2e%2E/x",
            "http://i.cnn.net/.",
        ] {
            assert_eq!(Shape::of(reference), Shape::Odd, "{reference:?}");
        }
    }
}
