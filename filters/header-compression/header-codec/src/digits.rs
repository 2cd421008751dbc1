//! The alphabet of a packed field: 222 digits, each one byte.
//!
//! A field value may hold VCHAR and obs-text (RFC 9110, 5.5). Spaces and tabs could too, but not at either end, and
//! one proxy that trims would cost a page; they are left out, for two thousandths of the density. All other bytes
//! make Envoy close the connection.

use crate::error::DecodeError;

/// How many digits there are.
pub(crate) const RADIX: u64 = 222;

/// The first VCHAR, and how many there are up to `~`.
const VCHAR: (u8, u8) = (0x21, 94);
/// The first obs-text byte; all up to 0xff follow.
const OBS_TEXT: u8 = 0x80;

/// The byte a digit travels as. Digits are below [`RADIX`]; larger ones wrap.
pub(crate) fn to_byte(digit: u8) -> u8 {
    if digit < VCHAR.1 { digit.wrapping_add(VCHAR.0) } else { (digit - VCHAR.1).wrapping_add(OBS_TEXT) }
}

/// The digit a byte stands for.
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
