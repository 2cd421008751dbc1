//! The attributes of one start tag, found in its raw bytes.
//!
//! This says where each name and value stands in a tag, without allocating and without decoding, because most tags have
//! nothing to move. It follows the attribute states of
//! <https://html.spec.whatwg.org/multipage/parsing.html#before-attribute-name-state>; a property test holds it to the
//! parser's own result.

use std::borrow::Cow;
use std::ops::Range;

use crate::char_refs::Quote;
use crate::find::{BLOCK, Block, Which, find, find_exact, find_near, find_where};

/// One attribute of a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attribute<'t> {
    /// The name as written; compare it without regard to ASCII case.
    pub name: &'t [u8],
    /// The value as written, without its quotes; empty where there is none.
    pub value: &'t [u8],
    /// Where the value stands, from the tag's `<`. Empty where there is no value.
    pub range: Range<usize>,
    /// How the value is delimited.
    pub quote: Quote,
}

impl<'t> Attribute<'t> {
    /// Returns true if this is its name, in any case.
    #[inline]
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.len() == name.len() && self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// The value as browsers read it, character references decoded, to compare with keywords. URLs are read by
    /// `char_refs::Decoded`, which knows the way back.
    pub(crate) fn text(&self) -> Cow<'t, [u8]> {
        if find(b'&', self.value).is_none() {
            return Cow::Borrowed(self.value);
        }
        htmlize::unescape_bytes_in(self.value, htmlize::Context::Attribute)
    }
}

/// Where an attribute stands, from the tag's `<`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) name: Range<usize>,
    pub(crate) value: Range<usize>,
    quote: Quote,
}

/// How many bytes are looked at at once: a block of a name, and a quote behind it.
const START: usize = BLOCK + 1;

impl Span {
    /// Reads the attribute behind `at` and moves `at` behind it. None at the end of the tag, with `at` at its `>`. A tag
    /// may be cut: the last attribute then ends with the bytes, and `at` is not among them.
    #[inline]
    pub(crate) fn next(tag: &[u8], at: &mut usize) -> Option<Self> {
        if let Some(usual) = Self::usual(tag, *at) {
            *at = usual.value.end + 1;
            return Some(usual);
        }
        Self::unusual(tag, at)
    }

    /// An attribute that is written as most are: white space, then `name="value"`.
    #[inline]
    fn usual(tag: &[u8], at: usize) -> Option<Self> {
        let mut start = at + usize::from(is_space(*tag.get(at)?));
        if *tag.get(start)? <= b' ' {
            start += find_where(tag.get(start..)?, |block| !block.is_space())?;
        }
        let mut end = start;
        let quote = loop {
            let name = tag.get(end..)?.first_chunk::<START>()?;
            // Nearly every name consists of letters, which are above all bytes that end a name.
            let mut stops = Block::of(name.first_chunk()?).is_at_most(b'@').bits();
            let mut stop = stops.trailing_zeros() as usize;
            while let Some(b'-' | b'0'..=b':') = name.get(stop) {
                stops &= stops - 1;
                stop = stops.trailing_zeros() as usize;
            }
            match name.get(stop) {
                None => end += BLOCK,
                Some(b'=') if start < end + stop => {
                    end += stop;
                    break *name.get(stop + 1)?;
                }
                Some(_) => return None,
            }
        };
        let value = end + 2;
        let (quote, close) = match quote {
            b'"' => (Quote::Double, find_near::<b'"'>(tag, value)?),
            b'\'' => (Quote::Single, find_near::<b'\''>(tag, value)?),
            _ => return None,
        };
        Some(Self { name: start..end, value: value..close, quote })
    }

    /// An attribute however it is written.
    #[inline(never)]
    fn unusual(tag: &[u8], at: &mut usize) -> Option<Self> {
        *at = skip_while(tag, *at, |byte| is_space(byte) || byte == b'/');
        let start = *at;
        // A name may begin with `=`; anywhere else the sign ends it.
        let first = match *tag.get(start)? {
            b'>' => return None,
            b'=' => 1,
            _ => 0,
        };
        let rest = tag.get(start + first..).unwrap_or_default();
        let ends = |byte| is_space(byte) || matches!(byte, b'/' | b'>' | b'=');
        let name = start..start + first + find_exact(rest, may_end_name, ends).unwrap_or(rest.len());
        *at = skip_while(tag, name.end, is_space);
        let (value, quote) = if tag.get(*at) == Some(&b'=') { value(tag, at) } else { (*at..*at, Quote::None) };
        Some(Self { name, value, quote })
    }

    /// The attribute that stands there.
    #[inline]
    pub(crate) fn of<'t>(&self, tag: &'t [u8]) -> Attribute<'t> {
        Attribute {
            name: tag.get(self.name.clone()).unwrap_or_default(),
            value: tag.get(self.value.clone()).unwrap_or_default(),
            range: self.value.clone(),
            quote: self.quote,
        }
    }

    /// All attributes of a tag, in source order, duplicates included (browsers keep the first). `tag` is the whole start
    /// tag, from `<` to `>`, and its name has `name` bytes.
    pub(crate) fn all(tag: &[u8], name: usize) -> impl Iterator<Item = Self> {
        let mut at = 1 + name;
        std::iter::from_fn(move || Self::next(tag, &mut at))
    }
}

/// The value behind the `=` at `at`, and how it is delimited; moves `at` behind it.
fn value(tag: &[u8], at: &mut usize) -> (Range<usize>, Quote) {
    *at = skip_while(tag, *at + 1, is_space);
    let (quote, byte) = match tag.get(*at) {
        Some(b'"') => (Quote::Double, b'"'),
        Some(b'\'') => (Quote::Single, b'\''),
        _ => {
            let start = *at;
            *at = skip_while(tag, start, |byte| !is_space(byte) && byte != b'>');
            return (start..*at, Quote::None);
        }
    };
    let start = *at + 1;
    let rest = tag.get(start..).unwrap_or_default();
    let range = start..start + find(byte, rest).unwrap_or(rest.len());
    *at = range.end + 1;
    (range, quote)
}

fn skip_while(tag: &[u8], from: usize, skipped: impl Fn(u8) -> bool) -> usize {
    let rest = tag.get(from..).unwrap_or_default();
    from + rest.iter().position(|&byte| !skipped(byte)).unwrap_or(rest.len())
}

/// Holds of each byte that ends a name, and of control characters, which are part of one.
#[inline]
fn may_end_name(block: Block) -> Which {
    block.is_at_most(b' ') | block.is(b'/') | block.is_in(b'='..=b'>')
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0C' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(tag: &str) -> Vec<(String, String, Quote)> {
        Span::all(tag.as_bytes(), tag.len().min(4).saturating_sub(1))
            .map(|span| {
                let found = span.of(tag.as_bytes());
                assert_eq!(&tag.as_bytes()[found.range.clone()], found.value, "{tag}");
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                (text(found.name), text(found.value), found.quote)
            })
            .collect()
    }

    fn one(name: &str, value: &str, quote: Quote) -> (String, String, Quote) {
        (name.to_owned(), value.to_owned(), quote)
    }

    #[test]
    fn every_way_to_write_an_attribute_is_read() {
        assert_eq!(read("<img>"), []);
        assert_eq!(read("<img/>"), []);
        assert_eq!(read("<img src=a.png>"), [one("src", "a.png", Quote::None)]);
        assert_eq!(read("<img SRC = \"a b\"/ >"), [one("SRC", "a b", Quote::Double)]);
        assert_eq!(read("<img/src='a>b'alt>"), [one("src", "a>b", Quote::Single), one("alt", "", Quote::None)]);
        assert_eq!(read("<img src=a/>"), [one("src", "a/", Quote::None)]);
        assert_eq!(read("<img src= >"), [one("src", "", Quote::None)]);
        assert_eq!(read("<img src=\"\">"), [one("src", "", Quote::Double)]);
        assert_eq!(read("<img =a=b =>"), [one("=a", "b", Quote::None), one("=", "", Quote::None)]);
        assert_eq!(read("<img a\n=\tb\x0Cc>"), [one("a", "b", Quote::None), one("c", "", Quote::None)]);
        assert_eq!(read("<img a=b\"c a=d>"), [one("a", "b\"c", Quote::None), one("a", "d", Quote::None)]);
    }

    #[test]
    fn a_tag_that_stops_early_ends_the_list_and_nothing_else() {
        assert_eq!(read("<img src=\"a"), [one("src", "a", Quote::Double)]);
        assert_eq!(read("<img src"), [one("src", "", Quote::None)]);
        assert_eq!(read(""), []);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_usual_attribute_is_read_like_any_other(
            blank in "[ \n\x0B]{0,20}", name in "[a-z=:-]{1,20}", sign in "=?\"?", value in "[a '>]{0,40}", behind in "[\"' >]{0,40}",
        ) {
            let tag = format!("<a{blank}{name}{sign}{value}{behind}");
            let (mut at, mut unusually) = (2, 2);
            let read = Span::next(tag.as_bytes(), &mut at);
            prop_assert_eq!(read, Span::unusual(tag.as_bytes(), &mut unusually));
            prop_assert_eq!(at, unusually);
        }
    }
}
