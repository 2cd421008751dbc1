//! A style sheet of any size in bounded memory, cut anywhere.
//!
//! Held back is only the token at the end that more bytes could still change. Comments and white space are never held;
//! a string or `url()` beyond the limit (most are `data:`) is stepped through without being kept.

use std::ops::Range;

use encoding_rs::UTF_8;
use url_mapping::Reason;

use super::bytes::StandIn;
use super::scanner::{Fetch, Found, LOOKAHEAD, Scanner, TokenTooLong, value};
use crate::charset::Charset;

/// A URL in a sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SheetUrl {
    /// The bytes of the sheet that say it, counted from where the stream began.
    pub(crate) range: Range<usize>,
    /// What it says, or why it was not read.
    pub(crate) value: Result<Value, Reason>,
    pub(crate) fetch: Fetch,
}

/// What a URL in a sheet says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    /// Escapes decoded.
    pub(crate) url: String,
    /// If its characters outside ASCII stand for bytes ([`crate::charset::Text`]): the token as written.
    pub(crate) opaque: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Stream {
    scanner: Scanner,
    charset: Charset,
    stand_in: StandIn,
    /// The bytes not yet done with, and the same as text.
    bytes: Vec<u8>,
    text: String,
    /// Where the bytes held stand in the sheet.
    at: usize,
    inside: Inside,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Tokens,
    Comment {
        after_star: bool,
    },
    /// Behind a name too long to be read: nothing is told apart any more.
    Lost,
    /// A string or `url()` too long to be kept.
    Long {
        closing: u8,
        escape: Escape,
    },
}

/// How far into an escape a long token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    No,
    Backslash,
    Digits(u8),
    /// After a carriage return that belongs to the escape: a line feed would, too.
    Return,
}

impl Stream {
    /// `token_bytes`: the longest token that is looked at.
    pub(crate) fn new(charset: Charset, token_bytes: usize) -> Self {
        Self {
            scanner: Scanner::new(token_bytes),
            charset,
            stand_in: StandIn::new(charset.encoding().unwrap_or(UTF_8)),
            bytes: Vec::new(),
            text: String::new(),
            at: 0,
            inside: Inside::Tokens,
        }
    }

    /// How many of the last bytes could still become part of a URL.
    pub(crate) fn held(&self) -> usize {
        self.bytes.len()
    }

    /// Takes the next bytes and reports the URLs that are certain now.
    pub(crate) fn push(&mut self, bytes: &[u8], found: &mut dyn FnMut(SheetUrl)) -> Result<(), TokenTooLong> {
        self.bytes.extend_from_slice(bytes);
        self.stand_in.push(bytes, &mut self.text);
        self.advance(false, found)
    }

    /// Reports what the end of the sheet makes certain.
    pub(crate) fn finish(&mut self, found: &mut dyn FnMut(SheetUrl)) -> Result<(), TokenTooLong> {
        self.advance(true, found)
    }

    fn advance(&mut self, last: bool, found: &mut dyn FnMut(SheetUrl)) -> Result<(), TokenTooLong> {
        loop {
            let go_on = match self.inside {
                Inside::Tokens => self.tokens(last, found).unwrap_or_else(|TokenTooLong| {
                    self.inside = Inside::Lost;
                    true
                }),
                Inside::Lost => {
                    self.drop_first(self.text.len());
                    return Err(TokenTooLong);
                }
                Inside::Comment { after_star } => self.comment(after_star),
                Inside::Long { closing, escape } => self.long(closing, escape),
            };
            if !go_on {
                return Ok(());
            }
        }
    }

    /// Whether there is more to do with the bytes at hand.
    fn tokens(&mut self, last: bool, found: &mut dyn FnMut(SheetUrl)) -> Result<bool, TokenTooLong> {
        let Self { scanner, charset, bytes, text, at, .. } = self;
        let done = scanner.scan(text, last, &mut |url: Found| {
            let token = bytes.get(url.token.clone()).unwrap_or_default();
            let value = url.unread.map_or_else(|| read(*charset, token), Err);
            found(SheetUrl { range: *at + url.range.start..*at + url.range.end, value, fetch: url.fetch });
        })?;
        self.drop_first(done);
        if self.text.starts_with("/*") {
            self.drop_first(2);
            self.inside = Inside::Comment { after_star: false };
            return Ok(true);
        }
        if last || self.text.len() <= self.scanner.token_bytes() + LOOKAHEAD {
            return Ok(false);
        }
        if self.text.starts_with([' ', '\t', '\n', '\r', '\x0C']) {
            // White space may be read in pieces.
            self.drop_first(self.text.len());
            return Ok(false);
        }
        let long = self.scanner.long_token(&self.text)?;
        if let Some(fetch) = long.fetch {
            found(SheetUrl { range: self.at..self.at, value: Err(long.unread), fetch });
        }
        self.drop_first(long.opening);
        self.inside = Inside::Long { closing: long.closing, escape: Escape::No };
        Ok(true)
    }

    fn comment(&mut self, after_star: bool) -> bool {
        let end =
            if after_star && self.text.starts_with('/') { Some(1) } else { self.text.find("*/").map(|at| at + 2) };
        if let Some(end) = end {
            self.drop_first(end);
            self.inside = Inside::Tokens;
            return true;
        }
        if !self.text.is_empty() {
            self.inside = Inside::Comment { after_star: self.text.ends_with('*') };
            self.drop_first(self.text.len());
        }
        false
    }

    fn long(&mut self, closing: u8, mut escape: Escape) -> bool {
        let is_string = closing != b')';
        let mut end = None;
        for (at, byte) in self.text.bytes().enumerate() {
            escape = match (escape, byte) {
                (Escape::Backslash, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => Escape::Digits(1),
                (Escape::Backslash | Escape::Digits(_), b'\r') => Escape::Return,
                (Escape::Backslash, _)
                | (Escape::Digits(_), b' ' | b'\t' | b'\n' | b'\x0C')
                | (Escape::Return, b'\n') => Escape::No,
                (Escape::Digits(count @ 1..=5), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => Escape::Digits(count + 1),
                (_, b'\\') => Escape::Backslash,
                (_, byte) if byte == closing => {
                    end = Some(at + 1);
                    break;
                }
                // A bare line break ends a string, too; it is not part of it.
                (_, b'\n' | b'\r' | b'\x0C') if is_string => {
                    end = Some(at);
                    break;
                }
                _ => Escape::No,
            };
        }
        self.drop_first(end.unwrap_or(self.text.len()));
        self.inside = if end.is_some() { Inside::Tokens } else { Inside::Long { closing, escape } };
        end.is_some()
    }

    fn drop_first(&mut self, count: usize) {
        let count = count.min(self.text.len());
        self.bytes.drain(..count);
        self.text.drain(..count);
        self.at += count;
    }
}

/// The value of a string or `url()` token in the sheet's encoding.
fn read(charset: Charset, token: &[u8]) -> Result<Value, Reason> {
    let read = charset.read(token);
    let url = value(&read.text).ok_or(Reason::Encoding)?;
    Ok(Value { url, opaque: read.opaque.then(|| read.text.into_owned()) })
}
