//! The bytes at hand, addressed by their positions in the body.

use std::ops::Range;

use crate::find;

/// A piece of the body that begins at `start`. `last`: there will be no more of this markup.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input<'i> {
    pub(super) bytes: &'i [u8],
    pub(super) start: usize,
    pub(super) last: bool,
}

impl<'i> Input<'i> {
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.start + self.bytes.len()
    }

    /// These bytes; none if they are not all at hand.
    #[inline]
    pub(super) fn range(&self, range: Range<usize>) -> &'i [u8] {
        let from = range.start.checked_sub(self.start);
        let to = range.end.checked_sub(self.start);
        from.zip(to).and_then(|(from, to)| self.bytes.get(from..to)).unwrap_or_default()
    }

    #[inline]
    pub(super) fn from(&self, at: usize) -> &'i [u8] {
        self.range(at..self.end())
    }

    #[inline]
    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at.checked_sub(self.start)?).copied()
    }

    #[inline]
    pub(super) fn find(&self, from: usize, byte: u8) -> Option<usize> {
        find::find(byte, self.from(from)).map(|distance| from + distance)
    }
}
