//! The signs of markup, found by bit masks, 64 bytes at a time.
//!
//! Between two tags there may be much text, and in a quoted value, too. Only where a sign is near are the masks of its
//! neighbours made. A sign that is far is found without them.

use crate::find::{MASK, find, mask};

/// The signs of one piece of a page. Positions count from the start of the piece.
#[derive(Debug)]
pub(super) struct Signs<'i> {
    pub(super) bytes: &'i [u8],
    /// Where the masked bytes begin.
    start: usize,
    /// Which of the masked bytes are `<`, the first byte in the lowest bit.
    opens: u64,
    /// Which of them tell where a value or a tag ends: `>`, `=` and quotes.
    of_tag: u64,
}

impl<'i> Signs<'i> {
    pub(super) fn of(bytes: &'i [u8]) -> Self {
        // No byte is masked yet.
        Self { bytes, start: bytes.len(), opens: 0, of_tag: 0 }
    }

    /// Where `<` stands first from `from` on.
    #[inline]
    pub(super) fn open(&mut self, from: usize) -> Option<usize> {
        let passed = from.wrapping_sub(self.start);
        if passed >= MASK {
            return self.far_open(from);
        }
        match self.opens >> passed {
            0 => self.far_open(self.start + MASK),
            bits => Some(from + bits.trailing_zeros() as usize),
        }
    }

    /// Where a sign of a tag stands first: `>`, `=` or a quote.
    #[inline]
    pub(super) fn of_tag(&mut self, from: usize) -> Option<usize> {
        let passed = from.wrapping_sub(self.start);
        if passed >= MASK {
            return self.far_of_tag(from);
        }
        match self.of_tag >> passed {
            0 => self.far_of_tag(self.start + MASK),
            bits => Some(from + bits.trailing_zeros() as usize),
        }
    }

    /// Where this quote stands first.
    #[inline]
    pub(super) fn quote(&mut self, quote: u8, mut from: usize) -> Option<usize> {
        let end = self.start.saturating_add(MASK);
        while from < end {
            let sign = self.of_tag(from)?;
            if self.bytes.get(sign) == Some(&quote) {
                return Some(sign);
            }
            from = sign + 1;
        }
        find(quote, self.bytes.get(from..)?).map(|distance| from + distance)
    }

    #[inline(never)]
    fn far_open(&mut self, from: usize) -> Option<usize> {
        self.mask(from)?;
        if self.opens == 0 {
            let behind = from + MASK;
            let found = find(b'<', self.bytes.get(behind..)?)?;
            self.mask(behind + found)?;
            return Some(behind + found);
        }
        Some(from + self.opens.trailing_zeros() as usize)
    }

    #[inline(never)]
    fn far_of_tag(&mut self, mut from: usize) -> Option<usize> {
        loop {
            self.mask(from)?;
            if self.of_tag != 0 {
                return Some(from + self.of_tag.trailing_zeros() as usize);
            }
            from += MASK;
        }
    }

    #[inline]
    fn mask(&mut self, start: usize) -> Option<()> {
        let bytes = self.bytes.get(start..).filter(|bytes| !bytes.is_empty())?;
        self.opens = mask(bytes, |block| block.is(b'<'));
        self.of_tag = mask(bytes, |block| block.is_in(b'='..=b'>') | block.is(b'"') | block.is(b'\''));
        self.start = start;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_sign_is_found_from_wherever_it_is_looked_for(
            gaps in prop::collection::vec((0_usize..150, 0_usize..6), 0..6),
            from in prop::collection::vec(0_usize..400, 1..20),
        ) {
            let mut bytes = Vec::new();
            for (gap, sign) in gaps {
                bytes.resize(bytes.len() + gap, b'a');
                bytes.push(b"<>=\"'?"[sign]);
            }
            let mut signs = Signs::of(&bytes);
            for from in from {
                let first = |wanted: &[u8]| {
                    let distance = bytes.iter().skip(from).position(|byte| wanted.contains(byte))?;
                    Some(from + distance)
                };
                prop_assert_eq!(signs.open(from), first(b"<"));
                prop_assert_eq!(signs.of_tag(from), first(b">=\"'"));
                prop_assert_eq!(signs.quote(b'"', from), first(b"\""));
            }
        }
    }
}
