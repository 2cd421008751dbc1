//! The bytes of a style sheet that can begin or end something, found by the bit mask.

use super::token::ends_known_function;
use crate::find::{Block, MASK, Which, find_where, mask};

/// The special bytes of a piece of a style sheet, in order. Positions count from the start of the piece.
pub(super) struct Specials<'t> {
    bytes: &'t [u8],
    /// Where the masked bytes begin.
    start: usize,
    /// Which of them are special, the first one in the lowest bit.
    bits: u64,
}

impl<'t> Specials<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        // No byte is masked yet.
        Self { bytes, start: bytes.len(), bits: 0 }
    }

    /// The next one from `from` on, and where it is.
    #[inline]
    pub(super) fn next(&mut self, from: usize) -> Option<(usize, u8)> {
        let at = self.masked(from)?;
        self.bytes.get(at).map(|&byte| (at, byte))
    }

    /// The same, if semicolons are special, too.
    pub(super) fn next_or_semicolon(&mut self, from: usize) -> Option<(usize, u8)> {
        let at = from + find_where(self.bytes.get(from..)?, |block| is_special(block) | block.is(b';'))?;
        self.bytes.get(at).map(|&byte| (at, byte))
    }

    /// False if the bracket at `at` cannot belong to a function that holds URLs.
    #[inline]
    pub(super) fn may_open_known_function(&self, at: usize) -> bool {
        let end = at.checked_sub(3).and_then(|start| self.bytes.get(start..)?.first_chunk());
        end.is_none_or(|end| ends_known_function(*end))
    }

    #[inline]
    fn masked(&mut self, from: usize) -> Option<usize> {
        let passed = from.wrapping_sub(self.start);
        if passed >= MASK {
            return self.behind(from);
        }
        match self.bits >> passed {
            0 => self.behind(self.start + MASK),
            bits => Some(from + bits.trailing_zeros() as usize),
        }
    }

    #[inline]
    fn behind(&mut self, mut from: usize) -> Option<usize> {
        loop {
            let rest = self.bytes.get(from..).filter(|rest| !rest.is_empty())?;
            self.bits = mask(rest, is_special);
            self.start = from;
            if self.bits != 0 {
                return Some(from + self.bits.trailing_zeros() as usize);
            }
            from += MASK;
        }
    }
}

/// Bytes that can begin or end something: `"'()[]{}@\/`. All others are parts of names and numbers, white space, or delimiters
/// that mean nothing until the declaration is looked up. A bar and a backtick pass, too, and are stepped over.
#[inline]
fn is_special(block: Block) -> Which {
    // Of `[`, `\`, `]` and `@`, one bit makes `{`, `|`, `}` and a backtick.
    let low = block.without_case();
    low.is_in(b'{'..=b'}') | low.is(b'`') | block.is_in(b'\''..=b')') | block.is(b'"') | block.is(b'/')
}
