//! Codes long texts with Brotli (RFC 7932) or as raw bytes.
//!
//! The model of [`crate::spell`] suits a few dozen new bytes, and costs a quarter of a microsecond a byte. A content
//! security policy of some kilobytes goes to Brotli instead. Text that suits neither is coded as raw bytes. The Brotli
//! crate contains asserts, so this module limits its input: the window is fixed and lengths are checked first. A stream
//! that does not end exactly at its stated length is refused.

use std::io::Read;

use brotli::enc::BrotliEncoderParams;

use crate::coder::{Coder, number, salt};
use crate::error::DecodeError;
use crate::limits;

/// Binary logarithm of Brotli's window, which holds the largest block. With a window of 16 or less the Brotli crate
/// takes milliseconds at quality 5 and above.
const WINDOW_BITS: i32 = 17;
/// Brotli's quality. 4 is the last step that is worth its time here.
const QUALITY: i32 = 4;
/// Bytes of the decoder's input buffer.
const BUFFER_BYTES: usize = 4096;

/// Codes `text` and appends it to `out`. `compressed` allows Brotli.
pub(crate) fn code<C: Coder>(
    coder: &mut C,
    compressed: bool,
    text: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let length = number(coder, salt::BULK, u64::try_from(text.len()).unwrap_or(u64::MAX));
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if out.len().saturating_add(length) > limits::BLOCK_BYTES {
        return Err(DecodeError::TooLarge);
    }
    let packed = if compressed { compress(text) } else { None };
    let packed = packed.filter(|packed| packed.len() < text.len());
    if !coder.bit(&[salt::BULK], packed.is_some()) {
        return bytes(coder, text, length, out);
    }
    let packed = packed.unwrap_or_default();
    let packed_length = number(coder, salt::BULK, u64::try_from(packed.len()).unwrap_or(u64::MAX));
    let packed_length = usize::try_from(packed_length).unwrap_or(usize::MAX);
    if packed_length >= length {
        return Err(DecodeError::Malformed("compressed text that is not shorter"));
    }
    let mut read = Vec::new();
    bytes(coder, &packed, packed_length, &mut read)?;
    if text.is_empty() {
        decompress(&read, length, out)
    } else {
        out.extend_from_slice(text);
        Ok(())
    }
}

/// Codes bytes of which every value is equally likely.
fn bytes<C: Coder>(coder: &mut C, text: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let mut text = text.iter().copied();
    for _ in 0..length {
        if coder.spent() {
            return Err(DecodeError::Malformed("ends inside a text"));
        }
        let byte = coder.raw(8, u64::from(text.next().unwrap_or(0)));
        out.push(u8::try_from(byte).unwrap_or(0));
    }
    Ok(())
}

fn compress(text: &[u8]) -> Option<Vec<u8>> {
    if text.is_empty() {
        return None;
    }
    let params = BrotliEncoderParams {
        quality: QUALITY,
        lgwin: WINDOW_BITS,
        size_hint: text.len(),
        mode: brotli::enc::backward_references::BrotliEncoderMode::BROTLI_MODE_TEXT,
        ..BrotliEncoderParams::default()
    };
    let mut packed = Vec::with_capacity(text.len());
    brotli::BrotliCompress(&mut &*text, &mut packed, &params).ok()?;
    Some(packed)
}

/// Appends exactly `length` decompressed bytes, or fails.
fn decompress(packed: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    const REFUSED: DecodeError =
        DecodeError::Malformed("the Brotli stream is damaged or has another length than it states");
    let start = out.len();
    let limit = u64::try_from(length).unwrap_or(u64::MAX).saturating_add(1);
    brotli::Decompressor::new(packed, BUFFER_BYTES).take(limit).read_to_end(out).map_err(|_| REFUSED)?;
    if out.len().saturating_sub(start) == length { Ok(()) } else { Err(REFUSED) }
}
