//! The alphabet of a compressed field: 222 digits, each one byte.
//!
//! A field value may hold VCHAR and obs-text (RFC 9110, 5.5). It may also hold spaces and tabs, but not at either end,
//! and a proxy that trims them would break a page. The alphabet omits them and loses two thousandths of its density.
//! Envoy closes the connection on any other byte.

use crate::error::DecodeError;

/// Number of digits.
pub(crate) const RADIX: u64 = 222;

/// The first VCHAR, and the number of them up to `~`.
const VCHAR: (u8, u8) = (0x21, 94);
/// The first obs-text byte. The others follow it up to 0xff.
const OBS_TEXT: u8 = 0x80;

/// Returns the byte of a digit. Digits are below [`RADIX`]; larger ones wrap.
pub(crate) fn to_byte(digit: u8) -> u8 {
    if digit < VCHAR.1 { digit.wrapping_add(VCHAR.0) } else { (digit - VCHAR.1).wrapping_add(OBS_TEXT) }
}

/// Returns the digit of a byte.
pub(crate) fn from_byte(byte: u8) -> Result<u8, DecodeError> {
    match byte {
        0x21..=0x7e => Ok(byte - VCHAR.0),
        0x80..=0xff => Ok(byte - OBS_TEXT + VCHAR.1),
        _ => Err(DecodeError::Alphabet(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_comes_back_and_is_a_byte_that_header_values_may_hold() {
        for digit in 0..u8::try_from(RADIX).unwrap() {
            let byte = to_byte(digit);
            assert_eq!(from_byte(byte), Ok(digit));
            assert!(matches!(byte, 0x21..=0x7e | 0x80..=0xff), "digit {digit} travels as {byte:#x}");
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        for byte in (0..=0x20).chain([0x7f]) {
            assert_eq!(from_byte(byte), Err(DecodeError::Alphabet(byte)));
        }
    }
}
