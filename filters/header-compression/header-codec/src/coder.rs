//! Decisions, and the coders that write or read them.
//!
//! The encoder and the decoder run the same functions. The encoder passes the true value and gets it back; the decoder
//! passes any value and gets the one that was encoded. So each part of the format is written down once, and the two
//! cannot drift apart. The trainer is a third kind of coder, which only records the decisions.

use crate::dictionary::Dictionary;
use crate::hash::mix;
use crate::range::{RangeDecoder, RangeEncoder};

/// Writes or reads decisions.
pub trait Coder {
    /// Codes one yes or no, with the probability that the dictionary has for `contexts`. Returns the true value.
    fn bit(&mut self, contexts: &[u32], bit: bool) -> bool;
    /// Codes a number below 2^`bits` of which every value is equally likely. `bits` is at most 40. Returns the true
    /// value.
    fn raw(&mut self, bits: u32, value: u64) -> u64;
    /// Returns true if the message ended well before this point, so no encoder wrote what the decoder reads.
    fn spent(&self) -> bool {
        false
    }
}

/// Encodes decisions with the probabilities of a dictionary.
#[derive(Debug)]
pub(crate) struct Encoder<'a> {
    dictionary: &'a Dictionary,
    range: RangeEncoder,
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(dictionary: &'a Dictionary) -> Self {
        Self { dictionary, range: RangeEncoder::new() }
    }

    /// Appends the message to `field` and returns it.
    pub(crate) fn finish(self, field: Vec<u8>) -> Vec<u8> {
        self.range.finish(field)
    }
}

impl Coder for Encoder<'_> {
    fn bit(&mut self, contexts: &[u32], bit: bool) -> bool {
        self.range.bit(self.dictionary.probability(contexts), bit);
        bit
    }

    fn raw(&mut self, bits: u32, value: u64) -> u64 {
        self.range.raw(bits, value);
        value
    }
}

/// Decodes decisions with the probabilities of a dictionary.
#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    dictionary: &'a Dictionary,
    range: RangeDecoder<'a>,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(dictionary: &'a Dictionary, digits: &'a [u8]) -> Self {
        Self { dictionary, range: RangeDecoder::new(digits) }
    }
}

impl Coder for Decoder<'_> {
    fn bit(&mut self, contexts: &[u32], _: bool) -> bool {
        self.range.bit(self.dictionary.probability(contexts))
    }

    fn raw(&mut self, bits: u32, _: u64) -> u64 {
        self.range.raw(bits)
    }

    fn spent(&self) -> bool {
        self.range.spent()
    }
}

/// The most binary digits that [`number`] accepts.
const NUMBER_BITS: u32 = 40;
/// This many digits after the first one have a context. The digits below them are almost random.
const MODELLED_DIGITS: u32 = 3;

/// Codes a number below 2^40 that is more often small than large: its length in binary digits, then the digits.
pub(crate) fn number<C: Coder + ?Sized>(coder: &mut C, context: u32, value: u64) -> u64 {
    let value = value.saturating_add(1).min((1 << NUMBER_BITS) - 1);
    let length = value.ilog2();
    let mut seen = 0;
    while seen < NUMBER_BITS - 1 && coder.bit(&[mix(context, seen), mix(salt::LENGTH, seen)], seen < length) {
        seen += 1;
    }
    let mut digits = 1_u64;
    for place in (0..seen).rev() {
        let depth = seen - place;
        if depth > MODELLED_DIGITS {
            digits = (digits << (place + 1)) | coder.raw(place + 1, value & ((1 << (place + 1)) - 1));
            break;
        }
        let head = mix(seen, u32::try_from(digits).unwrap_or(0));
        let digit = coder.bit(&[mix(context ^ salt::DIGITS, head), mix(salt::DIGITS, head)], (value >> place) & 1 == 1);
        digits = (digits << 1) | u64::from(digit);
    }
    digits - 1
}

/// Codes a number that may be negative.
pub(crate) fn signed<C: Coder + ?Sized>(coder: &mut C, context: u32, value: i64) -> i64 {
    let negative = coder.bit(&[mix(context, salt::SIGN)], value < 0);
    let size = if value < 0 { !value } else { value };
    let context = mix(context, salt::SIGN ^ u32::from(negative));
    let size = i64::try_from(number(coder, context, u64::try_from(size).unwrap_or(0))).unwrap_or(0);
    if negative { !size } else { size }
}

/// Codes a number below 2^`bits`. The earlier digits are the context of each digit.
pub(crate) fn choice<C: Coder + ?Sized>(coder: &mut C, contexts: [u32; 2], bits: u32, value: u64) -> u64 {
    let mut node = 1_u64;
    for place in (0..bits).rev() {
        let at = u32::try_from(node).unwrap_or(0);
        let [first, second] = contexts;
        let digit = coder.bit(&[mix(first, at), mix(second, at)], (value >> place) & 1 == 1);
        node = (node << 1) | u64::from(digit);
    }
    node & ((1 << bits) - 1)
}

/// Constants that separate the contexts of different decisions.
pub(crate) mod salt {
    pub(crate) const LENGTH: u32 = 0x10;
    pub(crate) const DIGITS: u32 = 0x11;
    pub(crate) const SIGN: u32 = 0x12;
    pub(crate) const BASE_KIND: u32 = 0x21;
    pub(crate) const BASE_RANK: u32 = 0x22;
    pub(crate) const SAME: u32 = 0x23;
    pub(crate) const CHANGED: u32 = 0x24;
    pub(crate) const SKIPPED: u32 = 0x25;
    pub(crate) const MORE: u32 = 0x26;
    pub(crate) const NAME_KNOWN: u32 = 0x27;
    pub(crate) const NAME: u32 = 0x28;
    pub(crate) const RECENT: u32 = 0x30;
    pub(crate) const RECENT_RANK: u32 = 0x31;
    pub(crate) const COMMON: u32 = 0x32;
    pub(crate) const COMMON_RANK: u32 = 0x33;
    pub(crate) const IS_DATE: u32 = 0x40;
    pub(crate) const SAME_OFFSET: u32 = 0x41;
    pub(crate) const MAX_AGE: u32 = 0x42;
    pub(crate) const SECONDS: u32 = 0x43;
    pub(crate) const IS_NUMBER: u32 = 0x44;
    pub(crate) const DECIMAL: u32 = 0x45;
    pub(crate) const MODEL: u32 = 0x50;
    pub(crate) const MODEL_RANK: u32 = 0x51;
    pub(crate) const COPY: u32 = 0x52;
    pub(crate) const END: u32 = 0x53;
    pub(crate) const TAIL: u32 = 0x54;
    pub(crate) const SKIP_TOKENS: u32 = 0x55;
    pub(crate) const BULK: u32 = 0x56;
    pub(crate) const SPELL: u32 = 0x60;
    pub(crate) const MESSAGE: u32 = 0x70;
}
