//! Character references of HTML: decoded before a URL is looked at, written again where one is replaced.

use std::borrow::Cow;
use std::ops::Range;

use crate::find::{Block, find, find_where};

/// How a value is delimited, which decides what must be escaped in its replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quote {
    /// `name="value"`
    Double,
    /// `name='value'`
    Single,
    /// `name=value`
    None,
}

/// A value with its references decoded, and the way back.
#[derive(Debug)]
pub(crate) struct Decoded<'v> {
    /// The value as the page's scripts read it, by the rules for attributes (an `&` that begins no reference, or
    /// an old-style name without `;` before `=` or a letter, stays as it is).
    pub(crate) text: Cow<'v, str>,
    references: Vec<Reference>,
}

/// One reference: the characters it stands for, and where it is written.
#[derive(Debug)]
struct Reference {
    text: Range<usize>,
    written: Range<usize>,
    /// Written without its semicolon.
    is_open: bool,
}

impl<'v> Decoded<'v> {
    pub(crate) fn of(written: &'v str) -> Self {
        let Some(first) = find(b'&', written.as_bytes()) else {
            return Self { text: Cow::Borrowed(written), references: Vec::new() };
        };
        let (start, rest) = written.split_at_checked(first).unwrap_or_default();
        let mut text = String::with_capacity(written.len());
        text.push_str(start);
        let mut references = Vec::new();
        let mut at = first;
        // No reference contains the `&` of another, so each can be decoded without its neighbours.
        for piece in rest.split('&').skip(1) {
            let piece = rest.get(at - first..=at - first + piece.len()).unwrap_or_default();
            if let Some(behind) = piece.strip_prefix("&amp;") {
                // Nearly all references are this one.
                let (start, written) = (text.len(), at..at + piece.len() - behind.len());
                references.push(Reference { text: start..start + 1, written, is_open: false });
                text.push('&');
                text.push_str(behind);
                at += piece.len();
                continue;
            }
            let decoded = htmlize::unescape_attribute(piece);
            if decoded != piece {
                let after = tail_in_common(piece, &decoded);
                let length = piece.len() - after;
                references.push(Reference {
                    text: text.len()..text.len() + decoded.len() - after,
                    written: at..at + length,
                    is_open: !piece.get(..length).unwrap_or_default().ends_with(';'),
                });
            }
            text.push_str(&decoded);
            at += piece.len();
        }
        Self { text: Cow::Owned(text), references }
    }

    /// The edit of the value as written that makes this range of the text `with`.
    pub(crate) fn replacement(&self, range: Range<usize>, with: String, quote: Quote) -> (Range<usize>, String) {
        let written = self.written(range);
        let mut text = encode(with, quote);
        let follows_open = self.references.iter().any(|before| before.written.end == written.start && before.is_open);
        if follows_open {
            // What follows now decides whether `&quot` is a reference; the semicolon settles it.
            text.insert(0, ';');
        }
        (written, text)
    }

    /// Where a range of the text is written. The inside of a reference belongs to all of it.
    fn written(&self, range: Range<usize>) -> Range<usize> {
        let start = match self.references.iter().rev().find(|reference| reference.text.start <= range.start) {
            Some(reference) if range.start < reference.text.end => reference.written.start,
            Some(reference) => reference.written.end + range.start - reference.text.end,
            None => range.start,
        };
        let end = match self.references.iter().rev().find(|reference| reference.text.start < range.end) {
            Some(reference) => reference.written.end + range.end.saturating_sub(reference.text.end),
            None => range.end,
        };
        start..end
    }
}

/// How many bytes of a reference and the text behind it belong to the text. A reference stands for at least one character,
/// which may look like the end of the reference.
fn tail_in_common(piece: &str, decoded: &str) -> usize {
    let most = decoded.len() - decoded.chars().next().map_or(0, char::len_utf8);
    let same = piece.bytes().rev().zip(decoded.bytes().rev()).take_while(|(one, other)| one == other).count();
    same.min(most)
}

/// `value` written so that it decodes to itself between the given quotes.
pub(crate) fn encode(value: String, quote: Quote) -> String {
    let written_by_reference = |block: Block| {
        let always = block.is(b'&') | block.is(b'\r');
        match quote {
            Quote::Double => always | block.is(b'"'),
            Quote::Single => always | block.is(b'\''),
            Quote::None => {
                let signs = block.is(b'"') | block.is(b'\'') | block.is_in(b'<'..=b'>') | block.is(b'`');
                always | signs | block.is_space()
            }
        }
    };
    let mut rest = value.as_str();
    let mut written = String::new();
    while let Some(at) = find_where(rest.as_bytes(), written_by_reference) {
        if written.is_empty() {
            written.reserve(value.len() + 32);
        }
        let (as_it_is, behind) = rest.split_at_checked(at).unwrap_or_default();
        written.push_str(as_it_is);
        let mut behind = behind.chars();
        if let Some(character) = behind.next() {
            match reference(character) {
                Some(text) => written.push_str(text),
                None => written.push(character),
            }
        }
        rest = behind.as_str();
    }
    if written.is_empty() {
        return value;
    }
    written.push_str(rest);
    written
}

/// The reference to write for a character that cannot stand for itself.
fn reference(character: char) -> Option<&'static str> {
    Some(match character {
        '&' => "&amp;",
        '"' => "&quot;",
        '\'' => "&#39;",
        '<' => "&lt;",
        '>' => "&gt;",
        '=' => "&#61;",
        '`' => "&#96;",
        ' ' => "&#32;",
        '\t' => "&#9;",
        '\n' => "&#10;",
        '\x0C' => "&#12;",
        // A bare carriage return would be read as a line feed, between quotes too.
        '\r' => "&#13;",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markup::attributes::{Attribute, Span};
    use proptest::prelude::*;

    fn decode(value: &str) -> String {
        Decoded::of(value).text.into_owned()
    }

    #[test]
    fn a_range_of_the_text_leads_to_what_is_written_for_it() {
        let written = "a&amp;b&lt;&#59;;c&x=1";
        let decoded = Decoded::of(written);
        assert_eq!(decoded.text, "a&b<;;c&x=1");
        for (range, said) in [
            (0..1, "a"),
            (0..2, "a&amp;"),
            (1..2, "&amp;"),
            (2..3, "b"),
            (3..5, "&lt;&#59;"),
            (5..7, ";c"),
            (6..11, "c&x=1"),
            (0..11, written),
            (2..2, ""),
        ] {
            assert_eq!(&written[decoded.written(range.clone())], said, "{range:?}");
        }
    }

    #[test]
    fn references_are_read_as_attributes_have_them() {
        assert_eq!(decode("a?b&amp;c&#x2F;d&#47;e"), "a?b&c/d/e");
        assert_eq!(decode("a?b&c=d&copy=1&copy;"), "a?b&c=d&copy=1©");
        assert_eq!(decode("a?&lang=en&reg"), "a?&lang=en®");
        assert_eq!(decode("a?&&&;"), "a?&&&;");
    }

    proptest! {
        #[test]
        fn written_text_reads_back_as_itself(value in "[ -~\n\r\t\x0Cé]*") {
            for (quote, tag) in [
                (Quote::Double, format!("<a b=\"{}\">", encode(value.clone(), Quote::Double))),
                (Quote::Single, format!("<a b='{}'>", encode(value.clone(), Quote::Single))),
                (Quote::None, format!("<a b={}>", encode(value.clone(), Quote::None))),
            ] {
                let read: Vec<Attribute<'_>> = Span::all(tag.as_bytes(), 1).map(|span| span.of(tag.as_bytes())).collect();
                prop_assert_eq!(read.len(), 1, "{:?} {}", quote, tag);
                prop_assert_eq!(decode(std::str::from_utf8(read[0].value).unwrap()), value.as_str());
            }
        }

        #[test]
        fn decoding_piece_by_piece_is_decoding(written in "([a-f=;&#0-9x]|&amp;|&lt|&eacute;|&quot|é)*") {
            let decoded = Decoded::of(&written);
            prop_assert_eq!(&decoded.text, &htmlize::unescape_attribute(&written));
            for (start, _) in decoded.text.char_indices() {
                for (end, _) in decoded.text.char_indices().filter(|(end, _)| *end > start) {
                    let (range, with) = decoded.replacement(start..end, "h&=".to_owned(), Quote::Double);
                    let changed = format!("{}{with}{}", &written[..range.start], &written[range.end..]);
                    let wanted = format!("{}h&={}", &decoded.text[..start], &decoded.text[end..]);
                    prop_assert_eq!(decode(&changed), wanted);
                }
            }
        }
    }
}
