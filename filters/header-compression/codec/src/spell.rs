//! Text that nobody has seen before, byte by byte, under the model of the dictionary.
//!
//! The model is fixed: it learns nothing from what passes through, neither within a message nor across messages. So a
//! byte that is guessed right by a stranger never makes a message shorter; only whole tokens do (see [`crate::text`]).

use crate::coder::{Coder, salt};
use crate::hash::mix;

/// Ends a text; HTTP does not allow it inside one.
pub(crate) const END: u8 = 0;

/// What has been spelt or copied so far, as the model sees it.
#[derive(Debug, Clone)]
pub(crate) struct Speller {
    kind: u32,
    /// The last eight bytes, the latest lowest.
    past: u64,
    /// The kinds of the last six bytes.
    shape: u32,
    /// Which kinds of letters and digits the current word has, and how many of them.
    seen: u32,
    word: u32,
}

impl Speller {
    /// Begins a text of the kind that a hash of the field's name says.
    pub(crate) fn new(kind: u32) -> Self {
        Self { kind, past: 0, shape: 0, seen: 0, word: 0 }
    }

    /// Passes over a byte that both ends know already.
    pub(crate) fn pass(&mut self, byte: u8) {
        let (class, letter) = class(byte);
        self.past = (self.past << 8) | u64::from(byte);
        self.shape = (self.shape * 12 + class) % 12_u32.pow(6);
        if letter == 0 {
            (self.seen, self.word) = (0, 0);
        } else {
            self.seen |= letter;
            self.word = (self.word + 1).min(20);
        }
    }

    /// One byte; [`END`] ends the text.
    pub(crate) fn byte<C: Coder + ?Sized>(&mut self, coder: &mut C, byte: u8) -> u8 {
        let last = |bytes: u32| {
            let kept = self.past & ((1_u64 << (8 * bytes)) - 1);
            mix(u32::try_from(kept & 0xffff_ffff).unwrap_or(0), u32::try_from(kept >> 32).unwrap_or(0))
        };
        let contexts = [
            mix(salt::SPELL, self.kind),
            mix(salt::SPELL + 1, last(1) ^ self.kind),
            mix(salt::SPELL + 2, last(2)),
            mix(salt::SPELL + 3, last(3)),
            mix(salt::SPELL + 4, last(5)),
            mix(salt::SPELL + 5, self.shape),
            mix(salt::SPELL + 6, mix(self.kind, self.seen * 32 + self.word)),
        ];
        let mut node = 1_u32;
        for place in (0..8).rev() {
            let contexts = contexts.map(|context| mix(context, node));
            node = (node << 1) | u32::from(coder.bit(&contexts, (byte >> place) & 1 == 1));
        }
        let byte = u8::try_from(node & 0xff).unwrap_or(END);
        if byte != END {
            self.pass(byte);
        }
        byte
    }
}

/// The kind of a byte, and a flag for each kind that words are made of.
fn class(byte: u8) -> (u32, u32) {
    match byte {
        b'0'..=b'9' => (1, 1),
        b'a'..=b'f' => (2, 2),
        b'g'..=b'z' => (3, 4),
        b'A'..=b'F' => (4, 8),
        b'G'..=b'Z' => (5, 16),
        b'-' | b'_' => (6, 0),
        b'/' => (7, 0),
        b'.' => (8, 0),
        b'%' | b'+' => (9, 0),
        b' ' | b',' | b';' | b':' | b'=' => (10, 0),
        _ => (11, 0),
    }
}
