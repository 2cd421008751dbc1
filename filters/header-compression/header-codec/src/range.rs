//! A range coder that writes the digits of [`crate::digits`] instead of bits. So the output needs no second encoding,
//! which would cost bytes.
//!
//! The encoded message is a fraction below one. `low` and `range` hold six digits of the interval that is still open.
//! The coder writes a digit as soon as the interval is narrower than one unit of that digit. All arithmetic is on
//! integers, so every machine rounds alike.

use crate::digits::{self, RADIX};

/// One unit of the first of the six digits.
const UNIT: u64 = RADIX.pow(5);
/// One more than the largest value of six digits.
const WHOLE: u64 = UNIT * RADIX;
/// Probabilities are in units of 2^-16.
pub(crate) const PROBABILITY_BITS: u32 = 16;
/// The coder splits raw numbers into pieces of this many bits.
const RAW_BITS: u32 = 16;

/// An encoder may omit this many zeros at the end.
const LEFT_OUT: usize = 16;
/// Digits that a decoder may read past the end: the omitted zeros and the six digits that it holds in advance. A
/// decoder that reads more has a truncated message.
const SPENT: usize = LEFT_OUT + 6;

/// Encodes decisions as digits.
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

    /// Encodes one decision. `probability` is the probability of true, above 0 and below 2^16.
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

    /// Encodes the low `bits` of `value` with the same probability for every value.
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

    /// Appends the digits to `field`: as few as distinguish these decisions from all others.
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
        // The decoder reads zeros past the end, so the message omits zeros at its end.
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

    /// Carries the overflow above six digits into the digits already written.
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
        // The quotient is below RADIX, because low is below WHOLE.
        self.digits.push(u8::try_from(self.low / UNIT).unwrap_or(0));
        self.low = self.low % UNIT * RADIX;
    }
}

/// Decodes decisions. Never fails: it reads zeros past the end, and the caller's limits and check reject invalid
/// messages.
#[derive(Debug)]
pub(crate) struct RangeDecoder<'a> {
    value: u64,
    range: u64,
    digits: &'a [u8],
    /// Zeros read past the end.
    beyond: usize,
}

impl<'a> RangeDecoder<'a> {
    /// Starts to decode `digits`, which are values rather than bytes.
    pub(crate) fn new(digits: &'a [u8]) -> Self {
        let mut decoder = Self { value: 0, range: WHOLE, digits, beyond: 0 };
        for _ in 0..6 {
            decoder.shift();
        }
        decoder
    }

    /// Decodes a decision that was encoded with the same `probability`.
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

    /// Decodes a number that [`RangeEncoder::raw`] encoded.
    pub(crate) fn raw(&mut self, bits: u32) -> u64 {
        let mut left = bits;
        let mut value = 0_u64;
        while left > 0 {
            let take = left.min(RAW_BITS);
            left -= take;
            self.range >>= take;
            // A hostile message can point past the last piece. The decoder then returns the largest value.
            let piece = (self.value / self.range.max(1)).min((1 << take) - 1);
            self.value = self.value.saturating_sub(piece * self.range).min(self.range.saturating_sub(1));
            value = (value << take) | piece;
            self.settle();
        }
        value
    }

    /// Returns true if the decoder has read further past the end than any encoder omits.
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
