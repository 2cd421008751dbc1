//! A style sheet of any size in bounded memory, cut anywhere.
//!
//! Held back is only the string or `url()` at the end that is not complete. One beyond the limit (most are `data:`) is
//! stepped through without being kept.

use std::ops::Range;

use encoding_rs::UTF_8;
use url_mapping::Reason;

use super::bytes::StandIn;
use super::piece::LOOK_BEHIND;
use super::property::Fetch;
use super::scanner::{Found, Scanner, value};
use crate::charset::Charset;

/// A URL in a style sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SheetUrl {
    /// The bytes of the style sheet that say it, counted from where the stream began.
    pub range: Range<usize>,
    /// Its value, or why it was not read.
    pub value: Result<Value, Reason>,
    /// Its purpose.
    pub fetch: Fetch,
}

/// The value of a URL in a style sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    /// Escapes decoded.
    pub url: String,
    /// If its characters outside ASCII stand for bytes (its style sheet's encoding is not known): the token as written.
    pub opaque: Option<String>,
}

/// Reads a style sheet.
#[derive(Debug)]
pub(crate) struct Stream {
    scanner: Scanner,
    charset: Charset,
    stand_in: StandIn,
    /// The last bytes, from where the scanner looks behind, and the same as text.
    bytes: Vec<u8>,
    text: String,
    /// Where these begin in the style sheet.
    start: usize,
    /// Where the scanner goes on.
    at: usize,
}

impl Stream {
    /// `token_bytes`: the longest string or `url()` that is looked at.
    pub(crate) fn new(charset: Charset, token_bytes: usize) -> Self {
        Self {
            scanner: Scanner::new(token_bytes),
            charset,
            stand_in: StandIn::new(charset.encoding().unwrap_or(UTF_8)),
            bytes: Vec::new(),
            text: String::new(),
            start: 0,
            at: 0,
        }
    }

    /// How many of the last bytes could still become part of a URL.
    pub(crate) fn held(&self) -> usize {
        self.start + self.bytes.len() - self.at
    }

    /// Takes the next bytes and reports the URLs that are certain now.
    pub(crate) fn push(&mut self, bytes: &[u8], found: &mut dyn FnMut(SheetUrl)) {
        self.bytes.extend_from_slice(bytes);
        self.stand_in.push(bytes, &mut self.text);
        self.scan(false, found);
        let seen = self.at.saturating_sub(LOOK_BEHIND).saturating_sub(self.start);
        self.bytes.drain(..seen);
        self.text.drain(..seen);
        self.start += seen;
    }

    /// Reports what the end of the style sheet makes certain.
    pub(crate) fn finish(&mut self, found: &mut dyn FnMut(SheetUrl)) {
        self.scan(true, found);
    }

    fn scan(&mut self, last: bool, found: &mut dyn FnMut(SheetUrl)) {
        let Self { scanner, charset, bytes, text, start, at, .. } = self;
        *at = scanner.scan(text, *start, *at, last, &mut |url: Found| {
            let token = bytes.get(url.token.start - *start..url.token.end - *start).unwrap_or_default();
            let value = url.unread.map_or_else(|| read(*charset, token), Err);
            found(SheetUrl { range: url.range, value, fetch: url.fetch });
        });
    }
}

/// The value of a string or `url()` token in the style sheet's encoding.
fn read(charset: Charset, token: &[u8]) -> Result<Value, Reason> {
    let read = charset.read(token);
    let url = value(&read.text).ok_or(Reason::Encoding)?;
    Ok(Value { url, opaque: read.opaque.then(|| read.text.into_owned()) })
}
