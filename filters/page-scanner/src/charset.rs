//! Which encoding a body is in, as far as reading and writing URLs needs to know.
//!
//! Markup is ASCII in every encoding handled here, so only a URL with other characters needs the encoding, and one in an
//! encoding that nothing declares is left alone rather than guessed.

use std::borrow::Cow;
use std::fmt::Write;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// The encoding of a body, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Charset {
    encoding: Option<&'static Encoding>,
    /// Declared where later declarations no longer count: byte order mark, header, first `meta`.
    certain: bool,
}

/// A value as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text<'v> {
    pub(crate) text: Cow<'v, str>,
    /// The characters outside ASCII stand for bytes, because the encoding is not known. Such a text may be moved as long as
    /// these characters stay as they are.
    pub(crate) opaque: bool,
}

/// The text cannot be written in the body's encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unwritable;

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

    /// Returns true if markup can be found at all.
    pub(crate) fn is_ascii_compatible(self) -> bool {
        self.encoding.is_none_or(Encoding::is_ascii_compatible)
    }

    /// The encoding to read by; of an undeclared one, only what is ASCII means anything.
    pub(crate) fn encoding(self) -> Option<&'static Encoding> {
        self.encoding
    }

    /// The text of a value. It is opaque if it is broken, or in an encoding that nothing declares. Then each byte stands
    /// for itself, as in windows-1252.
    pub(crate) fn read(self, value: &[u8]) -> Text<'_> {
        if let (true, Ok(text)) = (value.is_ascii(), str::from_utf8(value)) {
            return Text { text: Cow::Borrowed(text), opaque: false };
        }
        let known = |encoding: &'static Encoding| encoding.decode_without_bom_handling_and_without_replacement(value);
        match self.encoding.and_then(known) {
            Some(text) => Text { text, opaque: false },
            None => Text { text: WINDOWS_1252.decode_without_bom_handling(value).0, opaque: true },
        }
    }

    /// Text for an attribute, as bytes. Characters that the encoding lacks become numeric references.
    pub(crate) fn write(self, text: String, opaque: bool) -> Vec<u8> {
        if text.is_ascii() {
            return text.into_bytes();
        }
        match self.encoding_of(opaque) {
            Some(encoding) => encoding.encode(&text).0.into_owned(),
            None => ascii_references(&text).into_bytes(),
        }
    }

    /// Text for where there are no character references, as bytes.
    pub(crate) fn write_raw(self, text: &str, opaque: bool) -> Result<Cow<'_, [u8]>, Unwritable> {
        if text.is_ascii() {
            return Ok(Cow::Borrowed(text.as_bytes()));
        }
        match self.encoding_of(opaque).map(|encoding| encoding.encode(text)) {
            Some((bytes, _, false)) => Ok(bytes),
            Some((_, _, true)) | None => Err(Unwritable),
        }
    }

    fn encoding_of(self, opaque: bool) -> Option<&'static Encoding> {
        if opaque { Some(WINDOWS_1252) } else { self.encoding }
    }
}

/// Text that means the same in every extension of ASCII.
fn ascii_references(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if character.is_ascii() {
            written.push(character);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(written, "&#{};", u32::from(character));
        }
    }
    written
}

/// Returns true if `changed` has the characters outside ASCII that `original` has, so that they may be opaque.
pub(crate) fn keeps_opaque(original: &str, changed: &str) -> bool {
    let beyond = |text: &str| text.chars().filter(|character| !character.is_ascii()).collect::<Vec<_>>();
    beyond(original) == beyond(changed)
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
