//! Where a tag ends: at the first `>` that is in no quoted value.
//!
//! Two readers that agree, as a test holds them to. [`Whole`] is for a tag that is there in one piece, as nearly all are,
//! and on its way learns what else is worth knowing. [`TagEnd`] goes on where the bytes ended.

use memchr::memchr;

use super::signs::Signs;
use crate::css;
use crate::find::{find, find_exact};

/// A tag that is there to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Whole {
    /// Behind its `>`.
    pub(super) end: usize,
    /// True if one of its attributes is a `style` that may hold a URL.
    pub(super) has_style: bool,
}

impl Whole {
    /// Reads a tag from the first byte of its name, which stands at `named`; none if it is not there to its end.
    #[inline]
    pub(super) fn read(signs: &mut Signs<'_>, named: usize) -> Option<Self> {
        let bytes = signs.bytes;
        let sign = signs.of_tag(named)?;
        if bytes.get(sign) == Some(&b'>') {
            return Some(Self { end: sign + 1, has_style: false });
        }
        Self::with_values(signs, named, sign)
    }

    /// The same of a tag whose name is at `start`, and whose first sign, at `sign`, does not end it.
    #[inline]
    fn with_values(signs: &mut Signs<'_>, start: usize, mut sign: usize) -> Option<Self> {
        let bytes = signs.bytes;
        let mut has_style = false;
        let mut at = start + name_length(bytes.get(start..)?)?;
        if sign < at {
            sign = signs.of_tag(at)?;
        }
        loop {
            // Only the signs are looked at, as long as the tag is written as nearly all are.
            let (names, behind) = bytes.get(at..)?.split_at_checked(sign - at)?;
            let quote = match behind {
                [b'>', ..] => return Some(Self { end: sign + 1, has_style }),
                [b'=', quote @ (b'"' | b'\''), ..] if ends_with_name(names) => Some(*quote),
                _ => None,
            };
            if let Some(quote) = quote {
                let value = sign + 2;
                let close = signs.quote(quote, value)?;
                has_style |= ends_with_style(names) && css::may_hold_url_written(bytes.get(value..close)?);
                at = close + 1;
            } else {
                at += bytes.get(at..)?.iter().position(|&byte| !is_space(byte) && byte != b'/')?;
                if bytes.get(at) != Some(&b'>') {
                    let attribute = attribute(bytes.get(at..)?)?;
                    has_style |= attribute.is_style;
                    at += attribute.length;
                }
            }
            sign = signs.of_tag(at)?;
        }
    }
}

/// How many bytes the name of an element has; none if its end is not there.
#[inline]
pub(super) fn name_length(bytes: &[u8]) -> Option<usize> {
    find_exact(bytes, |block| block.is_at_most(b' ') | block.is(b'/') | block.is(b'>'), ends_name)
}

/// Returns true if an `=` behind this gives a value to a name. Without a name in front of it, the sign is part of one.
#[inline]
fn ends_with_name(names: &[u8]) -> bool {
    names.last().is_some_and(|&last| !is_space(last) && last != b'/')
}

/// Returns true if `style` is the last of these names.
#[inline]
fn ends_with_style(names: &[u8]) -> bool {
    // One letter tells it from most names.
    if names.last().is_none_or(|last| last | 0x20 != b'e') {
        return false;
    }
    let Some((before, name)) = names.split_last_chunk::<5>() else { return false };
    name.eq_ignore_ascii_case(b"style") && before.last().is_none_or(|&byte| is_space(byte) || byte == b'/')
}

/// One attribute of a [`Whole`] tag.
struct Passed {
    length: usize,
    is_style: bool,
}

/// Reads an attribute from the first byte of its name.
#[inline]
fn attribute(bytes: &[u8]) -> Option<Passed> {
    // A name may begin with `=`; anywhere else the sign ends it.
    let name = 1 + bytes.get(1..)?.iter().position(|&byte| ends_name(byte) || byte == b'=')?;
    let sign = skip_space(bytes, name)?;
    if bytes.get(sign) != Some(&b'=') {
        return Some(Passed { length: sign, is_style: false });
    }
    let at = skip_space(bytes, sign + 1)?;
    let behind = bytes.get(at..)?;
    let (value, length) = if let Some((quote @ (b'"' | b'\''), quoted)) = behind.split_first() {
        let value = find(*quote, quoted)?;
        (quoted.get(..value)?, at + 1 + value + 1)
    } else {
        let value = behind.iter().position(|&byte| is_space(byte) || byte == b'>')?;
        (behind.get(..value)?, at + value)
    };
    let is_style = name == 5
        && bytes.get(..name).is_some_and(|name| name.eq_ignore_ascii_case(b"style"))
        && css::may_hold_url_written(value);
    Some(Passed { length, is_style })
}

fn skip_space(bytes: &[u8], from: usize) -> Option<usize> {
    Some(from + bytes.get(from..)?.iter().position(|&byte| !is_space(byte))?)
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
            ("p style='a:url(b)'>", true),
            ("p a=b STYLE = a:url(b)>", true),
            ("p style='a&#40;'>", true),
            ("p style='color:red'>", false),
            ("p title='url(b)' style>", false),
            ("p data-style='url(b)'>", false),
        ] {
            assert_eq!(
                Whole::read(&mut Signs::of(tag.as_bytes()), 0).map(|whole| whole.has_style),
                Some(has_style),
                "{tag}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_tag_read_whole_ends_where_it_ends_in_pieces(rest in "[a =\"'/>\n]{0,40}") {
            let tag = format!("a{rest}");
            let in_pieces = tag.as_bytes().iter().scan(TagEnd::default(), |end, byte| Some(end.find(&[*byte])));
            let length = in_pieces.take_while(Option::is_none).count() + 1;
            let wanted = (length <= tag.len()).then_some(length);
            prop_assert_eq!(Whole::read(&mut Signs::of(tag.as_bytes()), 0).map(|whole| whole.end), wanted);
        }
    }
}
