//! Looking for bytes, sixteen at a time: a page is read in an engine that is at its slowest byte by byte. `memchr` is unbeaten
//! over long distances, but looks for three different bytes at most, and its start costs more than the few bytes between
//! two tags or two quotes.

use std::ops::{BitAnd, BitOr, Not, RangeInclusive};

use wide::{i8x16, u8x16};

/// How many bytes are compared at once: a vector of every processor and engine there is.
pub(crate) const BLOCK: usize = 16;

/// So many bytes.
#[derive(Clone, Copy)]
pub(crate) struct Block(u8x16);

/// For which of them something holds.
#[derive(Clone, Copy)]
pub(crate) struct Which(u8x16);

impl Block {
    /// The first bytes of `bytes`, if there are enough.
    #[inline]
    pub(crate) fn first_of(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().map(Self::of)
    }

    #[inline]
    pub(crate) fn of(bytes: &[u8; BLOCK]) -> Self {
        Self(u8x16::new(*bytes))
    }

    #[inline]
    pub(crate) fn is(self, byte: u8) -> Which {
        Which(self.0.simd_eq(u8x16::splat(byte)))
    }

    /// `range` ends within ASCII.
    #[inline]
    pub(crate) fn is_in(self, range: RangeInclusive<u8>) -> Which {
        // Its end becomes the greatest number with a sign. What is above becomes negative.
        let raised = self.0 + u8x16::splat(0x7F - range.end());
        let below = i8x16::splat(0x7E_u8.wrapping_sub(range.end() - range.start()).cast_signed());
        Which(raised.cast_signed().simd_gt(below).cast_unsigned())
    }

    #[inline]
    pub(crate) fn is_at_most(self, byte: u8) -> Which {
        Which(self.0.min(u8x16::splat(byte)).simd_eq(self.0))
    }

    /// Of a byte, the highest bit alone says whether something holds of it.
    #[inline]
    pub(crate) fn is_beyond_ascii(self) -> Which {
        Which(self.0)
    }

    /// White space, as HTML has it.
    #[inline]
    pub(crate) fn is_space(self) -> Which {
        self.is(b' ') | (self.is_in(b'\t'..=b'\r') & !self.is(0x0B))
    }

    /// Bytes that differ in letter case alone become the same; so do a few pairs of signs.
    #[inline]
    pub(crate) fn without_case(self) -> Self {
        Self(self.0 | u8x16::splat(0x20))
    }
}

impl Which {
    /// The first one.
    #[inline]
    pub(crate) fn first(self) -> Option<usize> {
        let bits = self.bits();
        (bits != 0).then(|| bits.trailing_zeros() as usize)
    }

    /// A bit for each of them, the lowest one for the first.
    #[inline]
    pub(crate) fn bits(self) -> u32 {
        self.0.to_bitmask()
    }
}

impl BitOr for Which {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Which {
    type Output = Self;

    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Not for Which {
    type Output = Self;

    #[inline]
    fn not(self) -> Self {
        Self(self.0 ^ u8x16::splat(0xFF))
    }
}

/// How many bytes have a bit in a [`mask`].
pub(crate) const MASK: usize = 4 * BLOCK;

/// For which of the first [`MASK`] bytes something holds: the lowest bit is for the first byte. It must not hold of zero.
#[inline]
pub(crate) fn mask(bytes: &[u8], is: impl Fn(Block) -> Which) -> u64 {
    let bits = |block: &[u8; BLOCK]| u64::from(is(Block::of(block)).bits());
    match bytes.first_chunk::<MASK>().map(|bytes| bytes.as_chunks::<BLOCK>().0) {
        Some([first, second, third, fourth]) => {
            bits(first) | bits(second) << BLOCK | bits(third) << (2 * BLOCK) | bits(fourth) << (3 * BLOCK)
        }
        _ => mask_of_end(bytes, bits),
    }
}

/// The same of fewer bytes.
#[cold]
#[inline(never)]
fn mask_of_end(bytes: &[u8], bits: impl Fn(&[u8; BLOCK]) -> u64) -> u64 {
    let mut padded = [0; MASK];
    padded.iter_mut().zip(bytes).for_each(|(copy, byte)| *copy = *byte);
    padded.as_chunks::<BLOCK>().0.iter().rev().fold(0, |mask, block| mask << BLOCK | bits(block))
}

/// Where the first byte stands of which `is` holds. `may_be` holds of these and of few others.
#[inline]
pub(crate) fn find_exact(bytes: &[u8], may_be: impl Fn(Block) -> Which, is: impl Fn(u8) -> bool) -> Option<usize> {
    let found = find_where(bytes, may_be)?;
    if bytes.get(found).is_some_and(|&byte| is(byte)) {
        return Some(found);
    }
    bytes.iter().position(|&byte| is(byte))
}

/// Where the first byte stands of which `is` holds.
#[inline]
pub(crate) fn find_where(bytes: &[u8], is: impl Fn(Block) -> Which) -> Option<usize> {
    match Block::first_of(bytes).and_then(|block| is(block).first()) {
        None => find_behind(bytes, is),
        found => found,
    }
}

/// The same where it is not in the first block.
#[inline(never)]
fn find_behind(bytes: &[u8], is: impl Fn(Block) -> Which) -> Option<usize> {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    for (number, block) in blocks.iter().enumerate().skip(1) {
        if let Some(distance) = is(Block::of(block)).first() {
            return Some(number * BLOCK + distance);
        }
    }
    if rest.is_empty() {
        return None;
    }
    // The last block again, of which only the end is new, if there is one; else what there is.
    let (block, new) = if let Some(block) = bytes.last_chunk() {
        (*block, (u32::MAX << (BLOCK - rest.len())) & 0xFFFF)
    } else {
        let mut block = [0; BLOCK];
        block.iter_mut().zip(rest).for_each(|(copy, byte)| *copy = *byte);
        (block, (1 << rest.len()) - 1)
    };
    let bits = is(Block::of(&block)).bits() & new;
    (bits != 0).then(|| bytes.len().saturating_sub(BLOCK) + bits.trailing_zeros() as usize)
}

/// Blocks that [`find_near`] looks at before `memchr` takes over.
const NEAR_BLOCKS: usize = 8;

/// Where `BYTE` stands first from `from` on; it is usually in one of the first blocks.
#[inline]
pub(crate) fn find_near<const BYTE: u8>(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    for _ in 0..NEAR_BLOCKS {
        let Some(block) = bytes.get(at..)?.first_chunk() else { break };
        if let Some(distance) = Block::of(block).is(BYTE).first() {
            return Some(at + distance);
        }
        at += BLOCK;
    }
    find_not_near(BYTE, bytes, at)
}

#[cold]
#[inline(never)]
fn find_not_near(byte: u8, bytes: &[u8], from: usize) -> Option<usize> {
    memchr::memchr(byte, bytes.get(from..)?).map(|distance| from + distance)
}

/// Bytes that are looked at by the block before `memchr` takes over.
const NEAR: usize = 4 * BLOCK;

/// Where `byte` stands first; it is usually near.
#[inline]
pub(crate) fn find(byte: u8, bytes: &[u8]) -> Option<usize> {
    match Block::first_of(bytes).and_then(|block| block.is(byte).first()) {
        None => find_far(byte, bytes),
        found => found,
    }
}

/// The same where it is not in the first block.
#[inline(never)]
fn find_far(byte: u8, bytes: &[u8]) -> Option<usize> {
    let (near, far) = bytes.split_at_checked(NEAR).unwrap_or((bytes, &[]));
    let (blocks, rest) = near.as_chunks::<BLOCK>();
    for (number, block) in blocks.iter().enumerate().skip(1) {
        if let Some(distance) = Block::of(block).is(byte).first() {
            return Some(number * BLOCK + distance);
        }
    }
    match rest.iter().position(|&other| other == byte) {
        Some(distance) => Some(blocks.len() * BLOCK + distance),
        None => memchr::memchr(byte, far).map(|distance| near.len() + distance),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_is_found_at_any_distance_behind_any_other_bytes() {
        for other in [b'a', b'<' - 1, b'<' + 1, b'<' | 0x80, 0, 0xFE] {
            for length in 0..200 {
                let mut bytes = vec![other; length];
                assert_eq!(find(b'<', &bytes), None, "{length} of {other}");
                assert_eq!(find_near::<b'<'>(&bytes, 0), None, "{length} of {other}");
                assert_eq!(find_where(&bytes, |block| block.is(b'<') | block.is(0xFF)), None, "{length} of {other}");
                for at in (0..length).rev() {
                    for wanted in [0xFF, b'<'] {
                        bytes[at] = wanted;
                        let found = find_where(&bytes, |block| block.is(b'<') | block.is(0xFF));
                        assert_eq!(found, Some(at), "{at} in {length} of {other}");
                    }
                    assert_eq!(find(b'<', &bytes), Some(at), "{at} in {length} of {other}");
                    assert_eq!(find_near::<b'<'>(&bytes, at / 2), Some(at), "{at} in {length} of {other}");
                }
            }
        }
    }

    #[test]
    fn every_byte_is_distinguished_from_every_other() {
        for byte in 0..=u8::MAX {
            let block = Block::first_of(&[byte; BLOCK]).unwrap();
            let holds = |which: Which| which.first() == Some(0);
            assert_eq!(holds(block.is_space()), b" \t\n\x0C\r".contains(&byte), "{byte}");
            assert_eq!(holds(block.is_in(b'\''..=b')')), (b'\''..=b')').contains(&byte), "{byte}");
            assert_eq!(holds(block.is_in(0..=0x7F)), byte.is_ascii(), "{byte}");
            assert_eq!(holds(block.is_in(b'~'..=0x7F)), (b'~'..=0x7F).contains(&byte), "{byte}");
            assert_eq!(holds(block.is_in(0..=0)), byte == 0, "{byte}");
            assert_eq!(holds(block.is_beyond_ascii()), !byte.is_ascii(), "{byte}");
            assert_eq!(holds(block.without_case().is(b'e')), byte.eq_ignore_ascii_case(&b'e'), "{byte}");
        }
        assert!(Block::first_of(&[0; BLOCK - 1]).is_none());
    }
}
