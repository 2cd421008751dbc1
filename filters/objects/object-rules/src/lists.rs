//! Comma-separated lists whose items may contain quoted strings.

/// Iterates over the items of a field value. A comma in a quoted string separates nothing (RFC 9110 section 5.6.4). Omits
/// empty items. A quote without a partner is an ordinary byte, so it hides no item.
pub(crate) fn items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let (item, after) = split(rest?);
        rest = after;
        Some(item.trim_ascii())
    })
    .filter(|item| !item.is_empty())
}

/// Splits at the first comma outside quotes.
fn split(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b',' => return (text.get(..at).unwrap_or_default(), text.get(at + 1..)),
            b'"' => at += quoted(text.get(at + 1..).unwrap_or_default()),
            _ => {}
        }
        at += 1;
    }
    (text, None)
}

/// Returns the number of bytes up to and including the closing quote. 0 if there is none.
fn quoted(text: &[u8]) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_separates_unless_it_is_quoted() {
        for (value, expected) in [
            ("a, b,c", &["a", "b", "c"][..]),
            ("a=\"x, y\", b", &["a=\"x, y\"", "b"]),
            (r#"a="x\", y", b"#, &[r#"a="x\", y""#, "b"]),
            ("a=\"x, b", &["a=\"x", "b"]),
            ("a\"b\"c\", d", &["a\"b\"c\"", "d"]),
            (r#"a="\"#, &[r#"a="\"#]),
            (" , ,", &[]),
            ("", &[]),
        ] {
            let expected: Vec<&[u8]> = expected.iter().map(|item| item.as_bytes()).collect();
            assert_eq!(items(value.as_bytes()).collect::<Vec<_>>(), expected, "{value}");
        }
    }
}
