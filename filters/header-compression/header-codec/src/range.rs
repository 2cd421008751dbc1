//! A range coder that writes the digits of [`crate::digits`] instead of bits, so that nothing is lost to re-encoding.
//!
//! Fractions of a number below one: `low` and `range` hold six digits of the interval still open, and a digit is
//! written as soon as the interval is narrower than one unit of it. Rounding is the same on every machine, because
//! there are only integers.

use crate::digits::{self, RADIX};

/// One unit of the first of the six digits held.
const UNIT: u64 = RADIX.pow(5);
/// One more than what six digits can say.
const WHOLE: u64 = UNIT * RADIX;
/// Probabilities are in units of 2^-16.
pub(crate) const PROBABILITY_BITS: u32 = 16;
/// Raw numbers are cut into pieces of this many bits.
const RAW_BITS: u32 = 16;

/// How many zeros at the end an encoder may leave out.
const LEFT_OUT: usize = 16;
/// More digits read past the end than these mean that the message was cut short: those left out, and those a decoder
/// holds in advance.
const SPENT: usize = LEFT_OUT + 6;

/// Writes decisions as digits.
#[derive(Debug)]
pub(crate) struct RangeEncoder {
    low: u64,
    range: u64,
    digits: Vec<u8>,
}

impl RangeEncoder {
    pub(crate) fn new() -> Self {
        Self { low: 0, range: WHOLE, digits: Vec::with_capacity(128) }
    }

    /// Writes one decision; `probability` is that of true, above 0 and below 2^16.
    pub(crate) fn bit(&mut self, probability: u32, bit: bool) {
        let bound = (self.range >> PROBABILITY_BITS) * u64::from(probability);
        if bit {
            self.range = bound;
        } else {
            self.low += bound;
            self.range -= bound;
        }
        self.settle();
    }

    /// Writes the low `bits` of `value`, all values being equally likely.
    pub(crate) fn raw(&mut self, bits: u32, value: u64) {
        let mut left = bits;
        while left > 0 {
            let take = left.min(RAW_BITS);
            left -= take;
            self.range >>= take;
            self.low += self.range * ((value >> left) & ((1 << take) - 1));
            self.settle();
        }
    }

    /// The bytes of the field, as few as tell the decisions apart from all others.
    pub(crate) fn finish(mut self, mut field: Vec<u8>) -> Vec<u8> {
        let mut unit = WHOLE;
        for _ in 0..=6 {
            let candidate = self.low.div_ceil(unit) * unit;
            if candidate - self.low < self.range {
                self.low = candidate;
                break;
            }
            unit /= RADIX;
        }
        self.carry();
        for _ in 0..6 {
            self.shift();
        }
        // The decoder reads zeros past the end, so zeros at the end need not travel.
        let zeros = self.digits.iter().rev().take(LEFT_OUT).take_while(|digit| **digit == 0).count();
        let used = self.digits.len().saturating_sub(zeros);
        field.extend(self.digits.iter().take(used).copied().map(digits::to_byte));
        field
    }

    fn settle(&mut self) {
        self.carry();
        while self.range < UNIT {
            self.shift();
            self.range *= RADIX;
        }
    }

    /// Moves what has grown past six digits into the digits already written.
    fn carry(&mut self) {
        if self.low < WHOLE {
            return;
        }
        self.low -= WHOLE;
        for digit in self.digits.iter_mut().rev() {
            *digit += 1;
            if u64::from(*digit) < RADIX {
                return;
            }
            *digit = 0;
        }
    }

    fn shift(&mut self) {
        // Below RADIX, because low is below WHOLE.
        self.digits.push(u8::try_from(self.low / UNIT).unwrap_or(0));
        self.low = self.low % UNIT * RADIX;
    }
}

/// Reads decisions back. Never fails: past the end it reads zeros, and the caller's limits and check catch nonsense.
#[derive(Debug)]
pub(crate) struct RangeDecoder<'a> {
    value: u64,
    range: u64,
    digits: &'a [u8],
    /// Zeros read past the end.
    beyond: usize,
}

impl<'a> RangeDecoder<'a> {
    /// Reads `digits` (values, not bytes).
    pub(crate) fn new(digits: &'a [u8]) -> Self {
        let mut decoder = Self { value: 0, range: WHOLE, digits, beyond: 0 };
        for _ in 0..6 {
            decoder.shift();
        }
        decoder
    }

    /// Reads a decision that was written with the same `probability`.
    pub(crate) fn bit(&mut self, probability: u32) -> bool {
        let bound = (self.range >> PROBABILITY_BITS) * u64::from(probability);
        let bit = self.value < bound;
        if bit {
            self.range = bound;
        } else {
            self.value -= bound;
            self.range -= bound;
        }
        self.settle();
        bit
    }

    /// Reads what [`RangeEncoder::raw`] wrote.
    pub(crate) fn raw(&mut self, bits: u32) -> u64 {
        let mut left = bits;
        let mut value = 0_u64;
        while left > 0 {
            let take = left.min(RAW_BITS);
            left -= take;
            self.range >>= take;
            // A hostile message can point past the last piece; the largest value stands for it.
            let piece = (self.value / self.range.max(1)).min((1 << take) - 1);
            self.value = self.value.saturating_sub(piece * self.range).min(self.range.saturating_sub(1));
            value = (value << take) | piece;
            self.settle();
        }
        value
    }

    /// Whether more has been read past the end than any encoder leaves out.
    pub(crate) fn spent(&self) -> bool {
        self.beyond > SPENT
    }

    fn settle(&mut self) {
        while self.range < UNIT {
            self.shift();
            self.range *= RADIX;
        }
    }

    fn shift(&mut self) {
        let digit = if let Some((digit, rest)) = self.digits.split_first() {
            self.digits = rest;
            *digit
        } else {
            self.beyond += 1;
            0
        };
        self.value = self.value * RADIX + u64::from(digit);
    }
}
