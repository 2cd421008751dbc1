//! A string or `url()` token as written.

use std::ops::Range;

use cssparser::{Parser, Token};

use crate::find::find_where;

/// How far a string or `url()` is plain: its value is what is written, without escapes and control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    /// To its end. So many bytes are in front of the closing one.
    Closed(usize),
    /// As far as there are bytes.
    Open,
    /// Not to its end.
    No,
}

impl Plain {
    fn of(content: &[u8], closing: u8, found: Option<usize>) -> Self {
        match found {
            Some(end) if content.get(end) == Some(&closing) => Self::Closed(end),
            Some(_) => Self::No,
            None => Self::Open,
        }
    }

    /// `content`: what is behind the opening quote.
    #[inline]
    pub(super) fn string(content: &[u8], quote: u8) -> Self {
        let end = find_where(content, |block| block.is(quote) | block.is(b'\\') | block.is_at_most(0x1F));
        Self::of(content, quote, end)
    }

    /// `content`: what is behind the opening bracket and the white space there. White space at the end is not plain.
    #[inline]
    pub(super) fn url(content: &[u8]) -> Self {
        let end = find_where(content, |block| {
            block.is_in(b'\''..=b')') | block.is(b'"') | block.is(b'\\') | block.is_at_most(b' ') | block.is(0x7F)
        });
        Self::of(content, b')', end)
    }
}

/// The value of a token that is plain to its end.
fn plain_value(token: &str) -> Option<&str> {
    let (start, plain) = match token.as_bytes() {
        [quote @ (b'"' | b'\''), content @ ..] => (1, Plain::string(content, *quote)),
        [u, r, l, b'(', content @ ..] if [*u, *r, *l].eq_ignore_ascii_case(b"url") => (4, Plain::url(content)),
        _ => return None,
    };
    match plain {
        Plain::Closed(length) if start + length + 1 == token.len() => token.get(start..start + length),
        _ => None,
    }
}

/// Where the URL stands in a string or `url()` token as written.
pub(super) fn inside(written: &str) -> Range<usize> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\x0C' | b'\r');
    let bytes = written.as_bytes();
    let escaped = |end: usize| {
        let before = bytes.get(..end).unwrap_or_default();
        before.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
    };
    // The end of the input closes what is still open, so the last byte is not always the closing one.
    let closed_by = |byte: u8, from: usize| {
        let last = bytes.len().saturating_sub(1);
        if last >= from && bytes.get(last) == Some(&byte) && !escaped(last) { last } else { bytes.len() }
    };
    if let Some(&quote @ (b'"' | b'\'')) = bytes.first() {
        return 1..closed_by(quote, 1);
    }
    let open = bytes.iter().position(|&byte| byte == b'(').map_or(bytes.len(), |at| at + 1);
    let end = closed_by(b')', open);
    let body = bytes.get(open..end).unwrap_or_default();
    let start = open + body.iter().take_while(|byte| is_space(byte)).count();
    let kept = bytes.get(start..end).unwrap_or_default();
    let trailing = kept.iter().rev().take_while(|byte| is_space(byte)).count();
    start..end - trailing
}

/// The value of a string or `url()` token.
pub(crate) fn value(token: &str) -> Option<String> {
    if let Some(value) = plain_value(token) {
        return Some(value.to_owned());
    }
    let mut parser = Parser::new(token);
    match parser.next_including_whitespace_and_comments() {
        Ok(Token::QuotedString(value) | Token::UnquotedUrl(value)) => Some(value.as_ref().to_owned()),
        _ => None,
    }
}

/// Returns true if this may end the name of a function that holds URLs: `url`, `src` or `image-set`.
#[inline]
pub(super) fn ends_known_function([first, second, third]: [u8; 3]) -> bool {
    let end = u32::from_le_bytes([first, second, third, 0]) | 0x0020_2020;
    end == u32::from_le_bytes(*b"url\0") || end == u32::from_le_bytes(*b"src\0") || end == u32::from_le_bytes(*b"set\0")
}
