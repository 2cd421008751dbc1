//! Character references of HTML: decoded before a URL is looked at, written again where one is replaced.

use std::borrow::Cow;

use crate::html::attributes::Quote;

/// The value an attribute has for the page's scripts, by the rules for attributes (an `&` that begins no reference, or an
/// old-style name without `;` before `=` or a letter, stays as it is).
pub(crate) fn decode(value: &str) -> Cow<'_, str> {
    if value.contains('&') { htmlize::unescape_attribute(value) } else { Cow::Borrowed(value) }
}

/// `value` written so that it decodes to itself between the given quotes.
pub(crate) fn encode(value: &str, quote: Quote) -> Cow<'_, str> {
    let reference = |character: char| match (character, quote) {
        ('&', _) => Some("&amp;"),
        ('"', Quote::Double | Quote::None) => Some("&quot;"),
        ('\'', Quote::Single | Quote::None) => Some("&#39;"),
        ('<', Quote::None) => Some("&lt;"),
        ('>', Quote::None) => Some("&gt;"),
        ('=', Quote::None) => Some("&#61;"),
        ('`', Quote::None) => Some("&#96;"),
        (' ', Quote::None) => Some("&#32;"),
        ('\t', Quote::None) => Some("&#9;"),
        ('\n', Quote::None) => Some("&#10;"),
        ('\x0C', Quote::None) => Some("&#12;"),
        // A bare carriage return would be read as a line feed, between quotes too.
        ('\r', _) => Some("&#13;"),
        _ => None,
    };
    if !value.chars().any(|character| reference(character).is_some()) {
        return Cow::Borrowed(value);
    }
    let mut written = String::with_capacity(value.len() + 16);
    for character in value.chars() {
        match reference(character) {
            Some(text) => written.push_str(text),
            None => written.push(character),
        }
    }
    Cow::Owned(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::attributes::Attributes;
    use proptest::prelude::*;

    #[test]
    fn references_are_read_as_attributes_have_them() {
        assert_eq!(decode("a?b&amp;c&#x2F;d&#47;e"), "a?b&c/d/e");
        assert_eq!(decode("a?b&c=d&copy=1&copy;"), "a?b&c=d&copy=1©");
        assert_eq!(decode("a?&lang=en&reg"), "a?&lang=en®");
        assert_eq!(decode("a?&&&;"), "a?&&&;");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_as_itself(value in "[ -~\n\r\t\x0Cé]*") {
            for (quote, tag) in [
                (Quote::Double, format!("<a b=\"{}\">", encode(&value, Quote::Double))),
                (Quote::Single, format!("<a b='{}'>", encode(&value, Quote::Single))),
                (Quote::None, format!("<a b={}>", encode(&value, Quote::None))),
            ] {
                let read: Vec<_> = Attributes::of(tag.as_bytes()).collect();
                prop_assert_eq!(read.len(), 1, "{:?} {}", quote, tag);
                prop_assert_eq!(decode(std::str::from_utf8(read[0].value).unwrap()), value.as_str());
            }
        }
    }
}
