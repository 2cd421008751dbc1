//! A piece of a style sheet, and lookups in it: the next byte that matters, names, properties, tokens.

use std::ops::Range;

use cssparser::{Parser, Token};

use super::property::{Fetch, fetch_of_property};
use super::token::Plain;
use crate::find::find_where;

/// How far back, in bytes, the text must reach that is scanned: names and what stands between a name and what it names
/// are looked up there. A longer text is not seen, wherever the style sheet was cut.
pub(super) const LOOK_BEHIND: usize = 256;

/// A piece of a style sheet.
#[derive(Clone, Copy)]
pub(super) struct Piece<'t> {
    pub(super) text: &'t str,
    /// Where it begins in the style sheet.
    pub(super) start: usize,
    pub(super) last: bool,
}

impl<'t> Piece<'t> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub(super) fn get(&self, range: Range<usize>) -> &'t str {
        let from = range.start.checked_sub(self.start);
        let to = range.end.checked_sub(self.start);
        from.zip(to).and_then(|(from, to)| self.text.get(from..to)).unwrap_or_default()
    }

    pub(super) fn from(&self, at: usize) -> &'t str {
        self.get(at..self.end())
    }

    pub(super) fn bytes_from(&self, at: usize) -> &'t [u8] {
        at.checked_sub(self.start).and_then(|from| self.text.as_bytes().get(from..)).unwrap_or_default()
    }

    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at.checked_sub(self.start)?).copied()
    }

    /// Where the name before `at` begins, but not before `floor`; `at` if there is none.
    pub(super) fn name_before(&self, at: usize, floor: usize) -> usize {
        let floor = at.saturating_sub(LOOK_BEHIND).max(self.start).max(floor.min(at));
        let before = self.get(floor..at);
        let length = before.bytes().rev().take_while(|&byte| is_name(byte)).count();
        let name_at = at - length;
        // `<!--` is a token of its own.
        let opens_comment = self.get(name_at..at).starts_with("--") && self.get(floor..name_at).ends_with("<!");
        if opens_comment { name_at + 2 } else { name_at }
    }

    /// Where the name begins that has a backslash at `at`.
    pub(super) fn escaped_name(&self, at: usize, floor: usize) -> usize {
        let name_at = self.name_before(at, floor);
        if self.is_hash(name_at) { name_at - 1 } else { name_at }
    }

    pub(super) fn is_hash(&self, name_at: usize) -> bool {
        self.get(self.start..name_at).ends_with('#')
    }

    /// The token at `at` and its length; no token if that is longer than `most` bytes. None if there are too few bytes.
    pub(super) fn token_at(&self, at: usize, most: usize) -> Option<(Option<Token<'t>>, usize)> {
        let behind = self.from(at);
        let text = behind.get(..behind.floor_char_boundary(most + LOOK_AHEAD + 4)).unwrap_or(behind);
        let mut parser = Parser::new(text);
        let token = parser.next_including_whitespace_and_comments().ok().cloned();
        let length = parser.position().byte_index();
        let is_cut = text.len() < behind.len();
        let reaches_end = length + LOOK_AHEAD > text.len();
        if reaches_end && !is_cut && !self.last {
            return None;
        }
        let too_long = length > most || (reaches_end && is_cut);
        Some((token.filter(|_| !too_long), length))
    }

    /// The name at `at` and not longer than `most`, if nothing but its letters is needed to read it.
    pub(super) fn plain_name(&self, at: usize, most: usize) -> Option<&'t str> {
        let behind = self.bytes_from(at);
        let begins = match behind {
            [b'-', letter, ..] | [letter, ..] => letter.is_ascii_alphabetic(),
            [] => false,
        };
        let length = find_where(behind, |block| {
            !(block.without_case().is_in(b'a'..=b'z') | block.is(b'-') | block.is_in(b'0'..=b'9'))
        })?;
        let is_whole = behind.get(length).is_some_and(|&byte| byte != b'\\' && !is_name(byte));
        (begins && is_whole && length < most).then(|| self.get(at..at + length))
    }

    /// The string at `at`, and how many bytes it has; see [`Piece::token_at`].
    pub(super) fn string_at(&self, at: usize, most: usize) -> Option<(Sought, usize)> {
        let (quote, content) = self.bytes_from(at).split_first()?;
        let kept = content.get(..most).unwrap_or(content);
        match Plain::string(kept, *quote) {
            Plain::Closed(length) if length + 2 <= most => Some((Sought::Value, length + 2)),
            Plain::Open if kept.len() < content.len() => Some((Sought::TooLong, kept.len())),
            Plain::Open if !self.last => None,
            _ => self.sought(at, most, |token| matches!(token, Token::QuotedString(_))),
        }
    }

    /// The unquoted `url()` whose name is at `name_at`, and its content at `content`.
    pub(super) fn url_at(&self, name_at: usize, content: usize, most: usize) -> Option<(Sought, usize)> {
        let behind = self.bytes_from(content);
        let kept = behind.get(..most.saturating_sub(content - name_at)).unwrap_or(behind);
        let blank = kept.iter().take_while(|&&byte| is_space(char::from(byte))).count();
        match Plain::url(kept.get(blank..).unwrap_or_default()) {
            Plain::Closed(length) => Some((Sought::Value, content - name_at + blank + length + 1)),
            Plain::Open if kept.len() < behind.len() => Some((Sought::TooLong, kept.len())),
            Plain::Open if !self.last => None,
            _ => self.sought(name_at, most, |token| matches!(token, Token::UnquotedUrl(_))),
        }
    }

    /// The same by cssparser.
    fn sought(&self, at: usize, most: usize, is_value: impl Fn(&Token<'_>) -> bool) -> Option<(Sought, usize)> {
        let (token, length) = self.token_at(at, most)?;
        let sought = match token {
            Some(token) if is_value(&token) => Sought::Value,
            Some(_) => Sought::Broken,
            None => Sought::TooLong,
        };
        Some((sought, length))
    }

    /// The kind of fetch of the property in front of a colon.
    pub(super) fn property(&self, statement: Range<usize>) -> Fetch {
        if statement.len() > LOOK_BEHIND {
            return Fetch::Image;
        }
        let name = skip_blank(self.get(statement)).trim_end_matches(is_space);
        if name.contains('\\') {
            let mut parser = Parser::new(name);
            return match parser.next() {
                Ok(Token::Ident(name)) => fetch_of_property(name),
                _ => Fetch::Image,
            };
        }
        fetch_of_property(name)
    }

    /// Returns true if nothing but white space and comments stands there.
    pub(super) fn is_blank(&self, range: Range<usize>) -> bool {
        range.len() <= LOOK_BEHIND && skip_blank(self.get(range)).is_empty()
    }
}

/// A string or `url()`, as far as it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sought {
    /// It has a value.
    Value,
    /// It has none: it is not written as it must be.
    Broken,
    /// It is longer than what is looked at.
    TooLong,
}

/// CSS tokenization never looks further ahead than three code points past the end of a token.
const LOOK_AHEAD: usize = 3;

pub(super) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\x0C' | '\r')
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | 0) || !byte.is_ascii()
}

/// The text behind white space and comments.
pub(super) fn skip_blank(mut text: &str) -> &str {
    loop {
        text = text.trim_start_matches(is_space);
        let Some(comment) = text.strip_prefix("/*") else { return text };
        text = comment.split_once("*/").map_or("", |(_, behind)| behind);
    }
}
