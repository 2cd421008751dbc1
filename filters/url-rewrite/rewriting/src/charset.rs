//! Which encoding a body is in, as far as reading and writing URLs needs to know.
//!
//! Markup is ASCII in every encoding handled here, so only a URL with other characters needs the encoding, and one in an
//! encoding that nothing declares is left alone rather than guessed.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// What is known about a body's encoding so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Charset {
    encoding: Option<&'static Encoding>,
    /// Declared where later declarations no longer count: byte order mark, header, first `meta`.
    certain: bool,
}

/// The value cannot be read or written in the body's encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

impl Charset {
    /// From the `charset` of the Content-Type header, if there is one.
    pub(crate) fn from_header(encoding: Option<&'static Encoding>) -> Self {
        Self { encoding, certain: encoding.is_some() }
    }

    /// A byte order mark wins over everything, the header too.
    pub(crate) fn byte_order_mark(&mut self, start: &[u8]) {
        if let Some((encoding, _)) = Encoding::for_bom(start) {
            *self = Self { encoding: Some(encoding), certain: true };
        }
    }

    /// From `<meta charset>` or its older form; the first one counts.
    pub(crate) fn meta(&mut self, label: &[u8]) {
        if self.certain {
            return;
        }
        let Some(named) = Encoding::for_label(label) else { return };
        // The two exceptions of https://html.spec.whatwg.org/multipage/parsing.html#changing-the-encoding-while-parsing
        let encoding = if named == UTF_16BE || named == UTF_16LE {
            UTF_8
        } else if named == X_USER_DEFINED {
            WINDOWS_1252
        } else {
            named
        };
        *self = Self { encoding: Some(encoding), certain: true };
    }

    /// Whether markup can be found at all.
    pub(crate) fn is_ascii_compatible(self) -> bool {
        self.encoding.is_none_or(Encoding::is_ascii_compatible)
    }

    /// The encoding to read by; of an undeclared one, only what is ASCII means anything.
    pub(crate) fn encoding(self) -> Option<&'static Encoding> {
        self.encoding
    }

    /// The text of a value.
    pub(crate) fn read(self, value: &[u8]) -> Result<Cow<'_, str>, Unreadable> {
        if value.is_ascii() {
            return str::from_utf8(value).map(Cow::Borrowed).map_err(|_| Unreadable);
        }
        let encoding = self.encoding.ok_or(Unreadable)?;
        let text = encoding.decode_without_bom_handling_and_without_replacement(value).ok_or(Unreadable)?;
        // Browsers write the characters of a query in the page's encoding, those of a path in UTF-8. A moved URL would
        // have to say which, so it does not move.
        if encoding != UTF_8 && text.contains('?') {
            return Err(Unreadable);
        }
        Ok(text)
    }

    /// A value as bytes. Characters that the encoding lacks become numeric references, so this is for attributes only.
    pub(crate) fn write(self, value: &str) -> Cow<'_, [u8]> {
        match self.encoding {
            Some(encoding) if !value.is_ascii() => encoding.encode(value).0,
            _ => Cow::Borrowed(value.as_bytes()),
        }
    }
}

/// The label in `content="text/html; charset=..."`:
/// <https://html.spec.whatwg.org/multipage/urls-and-fetching.html#extracting-character-encodings-from-meta-elements>
pub(crate) fn label_in_content(content: &[u8]) -> Option<&[u8]> {
    let mut rest = content;
    loop {
        let at = rest.windows(7).position(|window| window.eq_ignore_ascii_case(b"charset"))?;
        rest = rest.get(at + 7..)?.trim_ascii_start();
        if let Some(value) = rest.strip_prefix(b"=") {
            rest = value.trim_ascii_start();
            break;
        }
    }
    match rest.first()? {
        quote @ (b'"' | b'\'') => rest.get(1..)?.split(|byte| byte == quote).next(),
        _ => rest.split(|byte| byte.is_ascii_whitespace() || *byte == b';').next(),
    }
}
