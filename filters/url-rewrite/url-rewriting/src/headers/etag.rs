//! Entity tags of rewritten bodies.
//!
//! A rewritten body is another representation than the origin's, so it gets its own tag with the fingerprint of the
//! rewriting. The tag is weak: compressed and plain copies have different bytes, and ranges of them must not be
//! combined.
//!
//! The tag contains the origin's tag. So a browser's `If-None-Match` can be restored for the origin, and a 304 still
//! saves the body. A change of configuration changes the fingerprint, and the browser fetches the page again.
//!
//! ```text
//! origin "abc"    we send W/"abc;lh=0123456789abcdef"
//! origin W/"abc"  we send W/"abc;lhw=0123456789abcdef"
//! ```

const STRONG: &str = ";lh=";
const WEAK: &str = ";lhw=";

/// Returns the tag of the rewritten body. `None` if `tag` is not an entity tag: no tag is better than a wrong one.
pub(crate) fn wrap(tag: &[u8], fingerprint: u64) -> Option<Vec<u8>> {
    let (opaque, marker) = match tag.strip_prefix(b"W/") {
        Some(opaque) => (opaque, WEAK),
        None => (tag, STRONG),
    };
    let inner = opaque.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inner.contains(&b'"') {
        return None;
    }
    Some([b"W/\"", inner, marker.as_bytes(), format!("{fingerprint:016x}").as_bytes(), b"\""].concat())
}

/// A request's `If-None-Match` as the origin should receive it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unwrapped {
    /// It contains no tag of this filter. Leave it.
    Foreign,
    /// Send this value instead. Tags with the current fingerprint are restored, outdated ones are dropped, and others
    /// stay.
    Restored(Vec<u8>),
    /// It contains only tags of this filter from before a change. The origin could confirm none of them.
    Outdated,
}

pub(crate) fn unwrap(if_none_match: &[u8], fingerprint: u64) -> Unwrapped {
    let mut ours = false;
    let mut restored = false;
    let mut tags: Vec<Vec<u8>> = Vec::new();
    for tag in if_none_match.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|tag| !tag.is_empty()) {
        match parse(tag) {
            None => tags.push(tag.to_vec()),
            Some((origin, version)) => {
                ours = true;
                if version == format!("{fingerprint:016x}").as_bytes() {
                    restored = true;
                    tags.push(origin);
                }
            }
        }
    }
    match (ours, restored) {
        (false, _) => Unwrapped::Foreign,
        (true, false) if tags.is_empty() => Unwrapped::Outdated,
        (true, _) => Unwrapped::Restored(tags.join(&b", "[..])),
    }
}

/// Splits a tag of this filter into the origin's tag and the fingerprint.
fn parse(tag: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let inner = tag.strip_prefix(b"W/").unwrap_or(tag).strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let (start, weak, version) = [(STRONG, false), (WEAK, true)].into_iter().find_map(|(marker, weak)| {
        let at = inner.windows(marker.len()).rposition(|window| window == marker.as_bytes())?;
        Some((inner.get(..at)?, weak, inner.get(at.checked_add(marker.len())?..)?))
    })?;
    if version.len() != 16 || !version.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    Some(([if weak { &b"W/\""[..] } else { b"\"" }, start, b"\""].concat(), version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_tag_is_weak_and_unwraps_to_the_origins() {
        for tag in [&b"\"abc\""[..], b"W/\"abc\"", b"\"\"", b"\"a;lh=b\"", b"\"\xff\""] {
            let ours = wrap(tag, 7).unwrap();
            assert!(ours.starts_with(b"W/\""));
            assert_eq!(unwrap(&ours, 7), Unwrapped::Restored(tag.to_vec()));
            assert_eq!(unwrap(&ours, 8), Unwrapped::Outdated);
        }
        assert_eq!(wrap(b"\"abc\"", 255).unwrap(), b"W/\"abc;lh=00000000000000ff\"");
    }

    #[test]
    fn a_compressor_that_weakens_or_strips_does_not_hide_our_tag() {
        assert_eq!(unwrap(b"\"abc;lh=0000000000000007\"", 7), Unwrapped::Restored(b"\"abc\"".to_vec()));
    }

    #[test]
    fn foreign_tags_stay_beside_the_proxys() {
        for foreign in [&b"\"abc\""[..], b"W/\"a\", \"b\"", b"*", b"\"x;lh=12\"", b"nonsense"] {
            assert_eq!(unwrap(foreign, 7), Unwrapped::Foreign);
        }
        let mixed = b"\"x\", W/\"a;lhw=0000000000000007\", W/\"b;lh=0000000000000001\"";
        assert_eq!(unwrap(mixed, 7), Unwrapped::Restored(b"\"x\", W/\"a\"".to_vec()));
    }

    #[test]
    fn a_malformed_entity_tag_is_not_wrapped() {
        for tag in [&b"abc"[..], b"", b"W/abc", b"\"a\"b\"", b"\""] {
            assert_eq!(wrap(tag, 7), None);
        }
    }
}
