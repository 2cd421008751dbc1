//! The attributes of one start tag, found in its raw bytes.
//!
//! The parser has already said where the tag is; this says where each name and value stands in it, without allocating and
//! without decoding, because most tags that are looked at have nothing to move. It follows the attribute states of
//! <https://html.spec.whatwg.org/multipage/parsing.html#before-attribute-name-state>; a property test holds it to the
//! parser's own result.

use std::borrow::Cow;
use std::ops::Range;

use crate::char_refs::Quote;
use crate::find::{Block, Which, find, find_exact, find_where};

/// One attribute of a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute<'t> {
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
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// The value as browsers read it, character references decoded, to compare with keywords. URLs are read by
    /// `char_refs::Decoded`, which knows the way back.
    pub fn text(&self) -> Cow<'t, [u8]> {
        if find(b'&', self.value).is_none() {
            return Cow::Borrowed(self.value);
        }
        htmlize::unescape_bytes_in(self.value, htmlize::Context::Attribute)
    }
}

/// The attributes of a tag, in source order, duplicates included (browsers keep the first).
#[derive(Debug, Clone)]
pub(crate) struct Attributes<'t> {
    tag: &'t [u8],
    at: usize,
}

impl<'t> Attributes<'t> {
    /// `tag` is the whole start tag, from `<` to `>`, and its name has `name` bytes.
    pub(crate) fn of(tag: &'t [u8], name: usize) -> Self {
        Self { tag, at: 1 + name }
    }

    fn peek(&self) -> Option<u8> {
        self.tag.get(self.at).copied()
    }

    fn skip_while(&mut self, skipped: impl Fn(u8) -> bool) {
        let rest = self.tag.get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|&byte| !skipped(byte)).unwrap_or(rest.len());
    }

    fn from(&self, start: usize) -> &'t [u8] {
        self.tag.get(start..self.at).unwrap_or_default()
    }

    /// The next one, if it is written as most are: a space, then `name="value"`.
    #[inline]
    fn usual(&self) -> Option<Attribute<'t>> {
        let (b' ', named) = self.tag.get(self.at..)?.split_first()? else { return None };
        let (name, behind) = named.split_at_checked(find_where(named, may_end_name)?)?;
        let (quote, quoted) = match behind {
            [b'=', b'"', quoted @ ..] => (Quote::Double, quoted),
            [b'=', b'\'', quoted @ ..] => (Quote::Single, quoted),
            _ => return None,
        };
        let byte = if quote == Quote::Double { b'"' } else { b'\'' };
        let value = quoted.get(..find(byte, quoted)?)?;
        let start = self.tag.len() - quoted.len();
        (!name.is_empty()).then(|| Attribute { name, value, range: start..start + value.len(), quote })
    }

    /// The value after `=`, as (range, quote).
    fn value(&mut self) -> (Range<usize>, Quote) {
        self.skip_while(is_space);
        let (quote, byte) = match self.peek() {
            Some(b'"') => (Quote::Double, b'"'),
            Some(b'\'') => (Quote::Single, b'\''),
            _ => {
                let start = self.at;
                self.skip_while(|byte| !is_space(byte) && byte != b'>');
                return (start..self.at, Quote::None);
            }
        };
        self.at += 1;
        let start = self.at;
        self.at +=
            find(byte, self.tag.get(self.at..).unwrap_or_default()).unwrap_or(self.tag.len().saturating_sub(self.at));
        let range = start..self.at;
        self.at += 1;
        (range, quote)
    }
}

impl<'t> Iterator for Attributes<'t> {
    type Item = Attribute<'t>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(attribute) = self.usual() {
            self.at = attribute.range.end + 1;
            return Some(attribute);
        }
        self.skip_while(|byte| is_space(byte) || byte == b'/');
        let start = self.at;
        match self.peek()? {
            b'>' => return None,
            // A name may begin with `=`; anywhere else the sign ends it.
            b'=' => self.at += 1,
            _ => {}
        }
        let rest = self.tag.get(self.at..).unwrap_or_default();
        let ends = |byte| is_space(byte) || matches!(byte, b'/' | b'>' | b'=');
        self.at += find_exact(rest, may_end_name, ends).unwrap_or(rest.len());
        let name = self.from(start);
        self.skip_while(is_space);
        let (range, quote) = if self.peek() == Some(b'=') {
            self.at += 1;
            self.value()
        } else {
            (self.at..self.at, Quote::None)
        };
        Some(Attribute { name, value: self.tag.get(range.clone()).unwrap_or_default(), range, quote })
    }
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

    fn read(tag: &str) -> Vec<(String, String, Quote)> {
        Attributes::of(tag.as_bytes(), tag.len().min(4).saturating_sub(1))
            .map(|found| {
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
}
