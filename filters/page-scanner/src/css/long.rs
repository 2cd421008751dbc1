//! A string or `url()` that is too long to be kept, stepped through to its end. Most are `data:`.

use crate::find::find_where;

/// How far into an escape a long token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    No,
    Backslash,
    Digits(u8),
    /// After a carriage return that belongs to the escape: a line feed would, too.
    Return,
}

impl Escape {
    /// Steps through more of the token: where it ends, if it does. `closing`: its quote or bracket.
    pub(super) fn end_of_token(&mut self, bytes: &[u8], closing: u8) -> Option<usize> {
        let plain = match *self {
            // The next byte that can be more than a part of the content.
            Self::No => find_where(bytes, |block| block.is(closing) | block.is(b'\\') | block.is_at_most(b'\r')),
            _ => Some(0),
        };
        let plain = plain.unwrap_or(bytes.len());
        for (distance, &byte) in bytes.iter().enumerate().skip(plain) {
            *self = match (*self, byte) {
                (Self::Backslash, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => Self::Digits(1),
                (Self::Backslash | Self::Digits(_), b'\r') => Self::Return,
                (Self::Backslash, _) | (Self::Digits(_), b' ' | b'\t' | b'\n' | b'\x0C') | (Self::Return, b'\n') => {
                    Self::No
                }
                (Self::Digits(count @ 1..=5), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => Self::Digits(count + 1),
                (_, b'\\') => Self::Backslash,
                (_, byte) if byte == closing => return Some(distance + 1),
                // A bare line break ends a string, too; it is not part of it.
                (_, b'\n' | b'\r' | b'\x0C') if closing != b')' => return Some(distance),
                _ => Self::No,
            };
        }
        None
    }
}
