//! Entity tags (RFC 9110 section 8.8.3).

/// Iterates over the tags of a list. A tag has no escapes, so a backslash is an ordinary byte. Some origins send tags
/// without quotes, and such a tag ends at a comma.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = value;
    std::iter::from_fn(move || {
        let (tag, after) = first(rest)?;
        rest = after;
        Some(tag)
    })
}

fn first(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = value.iter().position(|byte| !matches!(byte, b',' | b' ' | b'\t'))?;
    let value = value.get(start..)?;
    let prefix = if value.starts_with(b"W/\"") { 3 } else { usize::from(value.starts_with(b"\"")) };
    let quote = |from: usize| value.get(from..)?.iter().position(|&byte| byte == b'"');
    let end = match quote(prefix).filter(|_| prefix > 0) {
        Some(length) => prefix + length + 1,
        None => value.iter().position(|&byte| byte == b',').unwrap_or(value.len()),
    };
    let (tag, rest) = value.split_at_checked(end)?;
    Some((tag.trim_ascii(), rest))
}

/// Weak comparison (RFC 9110 section 8.8.3.2). Some origins and clients omit the quotes. So two tags are also equal if they
/// differ in their quotes alone.
pub(crate) fn weakly_equal(one: &[u8], other: &[u8]) -> bool {
    let bare = unquoted(opaque(one));
    opaque(one) == opaque(other) || (bare == unquoted(opaque(other)) && !bare.is_empty())
}

/// Strong comparison (RFC 9110 section 8.8.3.2).
pub(crate) fn strongly_equal(one: &[u8], other: &[u8]) -> bool {
    one == other && !is_weak(one) && !one.is_empty()
}

/// Returns true for a tag that promises equivalent content, not equal bytes.
pub(crate) fn is_weak(tag: &[u8]) -> bool {
    tag.starts_with(b"W/")
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

fn unquoted(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_tags_is_split_at_commas_outside_quotes() {
        for (value, expected) in [
            (r#""a", W/"b""#, &[r#""a""#, r#"W/"b""#][..]),
            (r#""a,b" ,, "c""#, &[r#""a,b""#, r#""c""#]),
            (r#""a\", "b""#, &[r#""a\""#, r#""b""#]),
            (r#""a""b""#, &[r#""a""#, r#""b""#]),
            ("abc , def", &["abc", "def"]),
            ("\"open, x", &["\"open", "x"]),
            ("*", &["*"]),
            ("\"\"", &["\"\""]),
            (" , ", &[]),
            ("", &[]),
        ] {
            let expected: Vec<&[u8]> = expected.iter().map(|tag| tag.as_bytes()).collect();
            assert_eq!(list(value.as_bytes()).collect::<Vec<_>>(), expected, "{value}");
        }
    }

    #[test]
    fn a_weak_tag_and_one_without_quotes_are_equal_weakly_alone() {
        for (one, other, weakly, strongly) in [
            ("\"a\"", "\"a\"", true, true),
            ("W/\"a\"", "\"a\"", true, false),
            ("W/\"a\"", "W/\"a\"", true, false),
            ("\"a\"", "\"b\"", false, false),
            ("\"a\"", "\"A\"", false, false),
            ("\"a\"", "a", true, false),
            ("W/\"a\"", "a", true, false),
            ("W/a", "\"a\"", true, false),
            ("\"a\"", "\"a", false, false),
            ("\"a\"", "b", false, false),
            ("\"\"", "\"\"", true, true),
            ("\"\"", "", false, false),
            ("\"\"", "\"", false, false),
            ("", "", true, false),
        ] {
            let (one, other) = (one.as_bytes(), other.as_bytes());
            assert_eq!((weakly_equal(one, other), strongly_equal(one, other)), (weakly, strongly));
        }
    }
}
