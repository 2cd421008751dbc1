//! Codes new text byte by byte under the model of the dictionary.
//!
//! The model is fixed. It learns nothing from the traffic, neither within a message nor across messages. So a byte that
//! an attacker guesses right never makes a message shorter; only a whole token does (see [`crate::text`]).

use crate::coder::{Coder, salt};
use crate::hash::mix;

/// Ends a text. HTTP does not allow this byte inside one.
pub(crate) const END: u8 = 0;

/// The bytes spelt or copied so far, which are the context of the next byte.
#[derive(Debug, Clone)]
pub(crate) struct Speller {
    kind: u32,
    /// The last eight bytes, with the latest in the lowest place.
    past: u64,
}

impl Speller {
    /// Begins a text. `kind` is the hash of the field's name.
    pub(crate) fn new(kind: u32) -> Self {
        Self { kind, past: 0 }
    }

    /// Adds a byte that both ends know already.
    pub(crate) fn pass(&mut self, byte: u8) {
        self.past = (self.past << 8) | u64::from(byte);
    }

    /// Codes one byte. [`END`] ends the text.
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
        ];
        let mut lines = contexts;
        let mut node = 1_u32;
        for place in (0..8).rev() {
            if place == 3 {
                lines = contexts.map(|context| mix(context, node));
            }
            let questions = lines.map(|line| near(line, node));
            node = (node << 1) | u32::from(coder.bit(&questions, (byte >> place) & 1 == 1));
        }
        let byte = u8::try_from(node & 0xff).unwrap_or(END);
        if byte != END {
            self.pass(byte);
        }
        byte
    }
}

/// Returns the context of one of the four decisions about half a byte.
///
/// The four contexts share their high bits, so that their slots lie close together in memory. The model would take
/// twice as long if each decision missed the CPU cache.
fn near(line: u32, node: u32) -> u32 {
    const LOW_BITS: u32 = 21;
    let low = line.wrapping_mul(0x85eb_ca6b) ^ node.wrapping_mul(0x9e37_79b1);
    (line >> LOW_BITS << LOW_BITS) | (low.wrapping_mul(0xc2b2_ae35) >> (32 - LOW_BITS))
}
