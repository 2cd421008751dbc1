//! A string or `url()` token as written.

use std::ops::Range;

use cssparser::{Parser, Token};

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
    let mut parser = Parser::new(token);
    match parser.next_including_whitespace_and_comments() {
        Ok(Token::QuotedString(value) | Token::UnquotedUrl(value)) => Some(value.as_ref().to_owned()),
        _ => None,
    }
}
