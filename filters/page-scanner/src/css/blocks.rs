//! The brackets that are open.

/// Open brackets that are distinguished. Below that, `url()` is still found, but no bare string in a function.
const MOST: usize = u64::BITS as usize;

/// The meaning of a bracket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    FontFace,
    /// `url(` and `src(` before a quote: a string first in it is a URL.
    Url,
    /// `image-set(`: every string directly in it is a URL.
    ImageSet,
    Other,
}

/// How many brackets are open, and which of them have a meaning: few have one.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    depth: usize,
    /// A bit for each block with this meaning, the lowest one for the outermost. No bit is set beyond the depth.
    font_faces: u64,
    urls: u64,
    image_sets: u64,
}

impl Blocks {
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    #[inline]
    pub(super) fn open(&mut self, block: Block) {
        let bit = if self.depth < MOST { 1 << self.depth } else { 0 };
        self.depth = self.depth.saturating_add(1);
        match block {
            Block::FontFace => self.font_faces |= bit,
            Block::Url => self.urls |= bit,
            Block::ImageSet => self.image_sets |= bit,
            Block::Other => {}
        }
    }

    #[inline]
    pub(super) fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self.font_faces | self.urls | self.image_sets != 0 {
            let open = if self.depth < MOST { (1 << self.depth) - 1 } else { u64::MAX };
            self.font_faces &= open;
            self.urls &= open;
            self.image_sets &= open;
        }
    }

    /// The meaning of the innermost one. None if none is open, or too many are.
    pub(super) fn last(&self) -> Option<Block> {
        let last = self.depth.checked_sub(1).filter(|&last| last < MOST)?;
        let is = |blocks: u64| blocks >> last & 1 == 1;
        Some(match () {
            () if is(self.font_faces) => Block::FontFace,
            () if is(self.urls) => Block::Url,
            () if is(self.image_sets) => Block::ImageSet,
            () => Block::Other,
        })
    }

    /// Returns true if more are open than are distinguished.
    pub(super) fn too_many(&self) -> bool {
        self.depth > MOST
    }

    pub(super) fn in_font_face(&self) -> bool {
        self.font_faces != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_are_a_stack(steps in prop::collection::vec(0_u8..6, 0..300)) {
            let (mut blocks, mut stack) = (Blocks::default(), Vec::new());
            for step in steps {
                let opened = match step {
                    0 => Some(Block::FontFace),
                    1 => Some(Block::Url),
                    2 => Some(Block::ImageSet),
                    3 | 4 => Some(Block::Other),
                    _ => None,
                };
                if let Some(block) = opened {
                    blocks.open(block);
                    stack.push(block);
                } else {
                    blocks.close();
                    stack.pop();
                }
                prop_assert_eq!(blocks.depth(), stack.len());
                prop_assert_eq!(blocks.too_many(), stack.len() > MOST);
                prop_assert_eq!(blocks.last(), stack.last().copied().filter(|_| stack.len() <= MOST));
                prop_assert_eq!(blocks.in_font_face(), stack.iter().take(MOST).any(|&block| block == Block::FontFace));
            }
        }
    }
}
