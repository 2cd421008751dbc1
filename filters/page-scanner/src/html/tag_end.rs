//! Where a tag ends: at the first `>` that is in no quoted value.
//!
//! Three readers that agree, as a test holds them to. [`passed`] is for tags that can hold nothing, as most are. [`Whole`]
//! is for a tag that is there in one piece, and keeps its attributes. [`TagEnd`] goes on where the bytes ended.

use memchr::memchr;

use super::names;
use crate::css;
use crate::find::{BLOCK, Block, Which, find_exact, find_near, find_where};
use crate::markup::attributes::Span;

/// A tag that is there to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Whole {
    /// From its `<` to its `>`.
    pub(super) length: usize,
    /// True if it is an end tag.
    pub(super) closing: bool,
    /// True if one of its attributes is a `style` that may hold a URL.
    pub(super) has_style: bool,
}

impl Whole {
    /// Reads the tag that begins with the first byte, and its attributes. None if it is not there to its end, or no tag.
    pub(super) fn read(bytes: &[u8], attributes: &mut Vec<Span>) -> Option<Self> {
        let closing = bytes.get(1) == Some(&b'/');
        let named = 1 + usize::from(closing);
        bytes.get(named).filter(|letter| letter.is_ascii_alphabetic())?;
        attributes.clear();
        let mut has_style = false;
        let mut at = named + name_length(bytes.get(named..)?)?;
        while *bytes.get(at)? != b'>' {
            if let Some(attribute) = Span::next(bytes, &mut at) {
                has_style |= is_style(&attribute, bytes);
                attributes.push(attribute);
            }
        }
        Some(Self { length: at + 1, closing, has_style })
    }
}

/// How many bytes of a tag are looked at at once: `</`, and a block from the first byte of its name.
const START: usize = 2 + BLOCK;

/// The length of the tag that begins with the first byte, if it is of no interest and written as most are. Else
/// [`Whole::read`] says more.
#[inline]
pub(super) fn passed(bytes: &[u8]) -> Option<usize> {
    let start = bytes.first_chunk::<START>()?;
    if start[1] == b'/' { passed_from::<2>(bytes, start) } else { passed_from::<1>(bytes, start) }
}

/// The same of a tag whose name stands `NAMED` bytes behind its `<`.
#[inline]
fn passed_from<const NAMED: usize>(bytes: &[u8], start: &[u8; START]) -> Option<usize> {
    let name = start.get(NAMED..)?.first_chunk::<BLOCK>()?;
    if !name[0].is_ascii_alphabetic() || names::may_matter([name[0], name[1], name[2]], NAMED == 2) {
        return None;
    }
    let name = Block::of(name);
    let sign = NAMED + is_sign(name).bits().trailing_zeros() as usize;
    // Without an equals sign before it, the first bracket is in no value.
    if let Some(b'>') = start.get(sign) {
        return Some(sign + 1);
    }
    let space = NAMED + name.is_at_most(b' ').bits().trailing_zeros() as usize;
    match start.get(space) {
        Some(b' ' | b'\n') if space < sign => passed_values(bytes, space),
        _ => None,
    }
}

/// The same of a tag whose name ends at `at`.
#[inline(never)]
fn passed_values(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let sign = at + find_where(bytes.get(at..)?, is_sign)?;
        if *bytes.get(sign)? == b'>' {
            return Some(sign + 1);
        }
        // White space and names without values do not matter, if the byte in front of the sign is part of a name.
        let before = *bytes.get(at..sign)?.last()?;
        let value = sign + 2;
        let close = match bytes.get(sign + 1)? {
            _ if before <= b' ' || before == b'/' => return None,
            b'"' => find_near::<b'"'>(bytes, value)?,
            b'\'' => find_near::<b'\''>(bytes, value)?,
            _ => return None,
        };
        // One letter tells `style` from most names.
        if before | 0x20 == b'e'
            && ends_with_style(bytes.get(at..sign)?)
            && css::may_hold_url_written(bytes.get(value..close)?)
        {
            return None;
        }
        at = close + 1;
    }
}

/// Holds of the signs that tell where a value begins, or the tag ends.
#[inline]
fn is_sign(block: Block) -> Which {
    block.is_in(b'='..=b'>')
}

/// Returns true if `style` is the last of these names.
#[inline]
fn ends_with_style(names: &[u8]) -> bool {
    let Some((before, name)) = names.split_last_chunk::<5>() else { return false };
    name.eq_ignore_ascii_case(STYLE) && before.last().is_none_or(|&byte| is_space(byte) || byte == b'/')
}

/// Returns true if this is a `style` that may hold a URL.
#[inline]
fn is_style(attribute: &Span, tag: &[u8]) -> bool {
    attribute.name.len() == STYLE.len()
        && tag.get(attribute.name.clone()).is_some_and(|name| name.eq_ignore_ascii_case(STYLE))
        && tag.get(attribute.value.clone()).is_some_and(css::may_hold_url_written)
}

const STYLE: &[u8; 5] = b"style";

/// How many bytes the name of an element has; none if its end is not there.
#[inline]
pub(super) fn name_length(bytes: &[u8]) -> Option<usize> {
    find_exact(bytes, |block| block.is_at_most(b' ') | block.is(b'/') | block.is(b'>'), ends_name)
}

/// Looks for the `>` of a tag, in any pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TagEnd {
    #[default]
    TagName,
    Between,
    /// In an attribute's name; only there and behind it does `=` mean anything.
    Name,
    /// In white space behind a name.
    BehindName,
    /// Behind `=`.
    BeforeValue,
    Unquoted,
    Quoted(u8),
}

impl TagEnd {
    /// Reads on, from behind the `<` at first; how many bytes it is to the end of the tag.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if let Self::Quoted(quote) = *self {
                at += memchr(quote, bytes.get(at..)?)?;
                *self = Self::Between;
            } else {
                *self = match (*self, byte) {
                    (_, b'>') => return Some(at + 1),
                    (Self::TagName, _) if is_space(byte) || byte == b'/' => Self::Between,
                    (Self::TagName, _) => Self::TagName,
                    (Self::BeforeValue, b'"' | b'\'') => Self::Quoted(byte),
                    (Self::Name | Self::BehindName, b'=') => Self::BeforeValue,
                    (Self::Name, _) if is_space(byte) => Self::BehindName,
                    (Self::Unquoted, _) if is_space(byte) => Self::Between,
                    (Self::Between | Self::Name | Self::BehindName, b'/') => Self::Between,
                    (Self::Between | Self::BehindName, _) if !is_space(byte) => Self::Name,
                    (Self::BeforeValue, _) if !is_space(byte) => Self::Unquoted,
                    (same, _) => same,
                };
            }
            at += 1;
        }
        None
    }
}

/// Returns true if a byte ends the name of an element or an attribute; of the latter, `=` does, too.
pub(super) fn ends_name(byte: u8) -> bool {
    is_space(byte) || byte == b'/' || byte == b'>'
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0C' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_style_that_may_hold_a_url_is_noticed() {
        for (tag, has_style) in [
            ("<p style='a:url(b)'>", true),
            ("<p a=b STYLE = a:url(b)>", true),
            ("<p style='a&#40;'>", true),
            ("<p style='color:red'>", false),
            ("<p title='url(b)' style>", false),
            ("<p data-style='url(b)'>", false),
        ] {
            assert_eq!(
                Whole::read(tag.as_bytes(), &mut Vec::new()).map(|whole| whole.has_style),
                Some(has_style),
                "{tag}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_tag_read_whole_ends_where_it_ends_in_pieces(tag in "</?a[a =\"'/>\n\x01]{0,40}", text in "x{0,20}") {
            let named = if tag.starts_with("</") { 2 } else { 1 };
            let bytes = tag.as_bytes().iter().skip(named);
            let in_pieces = bytes.scan(TagEnd::default(), |end, byte| Some(end.find(&[*byte])));
            let length = named + in_pieces.take_while(Option::is_none).count() + 1;
            let wanted = (length <= tag.len()).then_some(length);
            let tag = format!("{tag}{text}");
            prop_assert_eq!(Whole::read(tag.as_bytes(), &mut Vec::new()).map(|whole| whole.length), wanted);
            prop_assert!(passed(tag.as_bytes()).is_none_or(|length| Some(length) == wanted));
        }
    }
}
