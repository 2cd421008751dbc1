//! The bytes of a style sheet that can begin or end something, found by the bit mask.

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

    /// The next one from `from` on, and where it is. `semicolons`: whether these are special, too.
    #[inline]
    pub(super) fn next(&mut self, from: usize, semicolons: bool) -> Option<(usize, u8)> {
        let at = if semicolons {
            from + find_where(self.bytes.get(from..)?, |block| is_special(block) | block.is(b';'))?
        } else {
            self.masked(from)?
        };
        self.bytes.get(at).map(|&byte| (at, byte))
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
