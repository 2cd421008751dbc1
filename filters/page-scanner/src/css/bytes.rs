//! Bytes in any ASCII-compatible encoding, seen as text with the same positions.
//!
//! A tokenizer reads text, and edits need positions in the bytes as they came. These may be of an old encoding, broken, or
//! cut in the middle of a character. CSS treats every character outside ASCII as a letter. So each byte of one becomes
//! `_`, a letter too, and all positions agree.

use encoding_rs::{BIG5, EUC_KR, Encoding, GB18030, GBK, SHIFT_JIS};

use crate::find::{Block, find_where};

/// Turns bytes into a stand-in of the same length, one piece after the other.
#[derive(Debug)]
pub(crate) struct StandIn {
    trails: Trails,
    after_lead: bool,
}

/// Which bytes are followed by one that looks like ASCII and is not (`\` in `Shift_JIS` is the famous one).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trails {
    None,
    ShiftJis,
    /// Any byte above 0x80 begins a pair.
    Pairs,
}

impl StandIn {
    pub(crate) fn new(encoding: &'static Encoding) -> Self {
        let trails = if encoding == SHIFT_JIS {
            Trails::ShiftJis
        } else if [GBK, GB18030, BIG5, EUC_KR].contains(&encoding) {
            Trails::Pairs
        } else {
            Trails::None
        };
        Self { trails, after_lead: false }
    }

    /// Appends the stand-in of `bytes`, which has as many bytes.
    pub(crate) fn push(&mut self, bytes: &[u8], text: &mut String) {
        if let (false, true, Ok(ascii)) = (self.after_lead, bytes.is_ascii(), simdutf8::basic::from_utf8(bytes)) {
            text.push_str(ascii);
            return;
        }
        text.reserve(bytes.len());
        let mut rest = bytes;
        while let Some((&byte, behind)) = rest.split_first() {
            let run = if self.after_lead { 0 } else { find_where(rest, Block::is_beyond_ascii).unwrap_or(rest.len()) };
            let (run, behind_run) = rest.split_at_checked(run).unwrap_or_default();
            if let (false, Ok(ascii)) = (run.is_empty(), simdutf8::basic::from_utf8(run)) {
                text.push_str(ascii);
                rest = behind_run;
                continue;
            }
            rest = behind;
            let trail = self.after_lead && byte >= 0x30;
            self.after_lead = !trail && self.is_lead(byte);
            text.push(if trail || !byte.is_ascii() { '_' } else { char::from(byte) });
        }
    }

    fn is_lead(&self, byte: u8) -> bool {
        match self.trails {
            Trails::None => false,
            Trails::ShiftJis => matches!(byte, 0x81..=0x9F | 0xE0..=0xFC),
            Trails::Pairs => matches!(byte, 0x81..=0xFE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{UTF_8, WINDOWS_1252};

    fn stand_in(encoding: &'static Encoding, bytes: &[u8]) -> String {
        let mut whole = String::new();
        StandIn::new(encoding).push(bytes, &mut whole);
        let mut by_byte = String::new();
        let mut pieces = StandIn::new(encoding);
        for byte in bytes {
            pieces.push(&[*byte], &mut by_byte);
        }
        assert_eq!(whole, by_byte);
        assert_eq!(whole.len(), bytes.len());
        whole
    }

    #[test]
    fn letters_of_other_alphabets_become_letters_of_the_same_length() {
        assert_eq!(stand_in(UTF_8, "a{é:ß}".as_bytes()), "a{__:__}");
        assert_eq!(stand_in(UTF_8, b"\xFFa\xC3"), "_a_");
        assert_eq!(stand_in(WINDOWS_1252, b"a\xE9\\b"), "a_\\b");
    }

    #[test]
    fn a_second_byte_that_looks_like_a_backslash_is_none() {
        // U+8868 in Shift_JIS is 95 5C; a half-width katakana is one byte and takes nothing with it.
        assert_eq!(stand_in(SHIFT_JIS, b"\x95\\\\a\xB1\\"), "__\\a_\\");
        assert_eq!(stand_in(GB18030, b"\x81\x30\x81\x30\"\x81\\\""), "____\"__\"");
        // What cannot be a second byte is never swallowed: a broken character must not eat a quote.
        assert_eq!(stand_in(GBK, b"\x81\"a"), "_\"a");
    }
}
