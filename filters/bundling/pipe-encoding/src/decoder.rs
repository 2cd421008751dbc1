//! Decompresses br (RFC 7932) as it streams by.
//!
//! Envoy's decompressor ends a body silently once 100 bytes come of one. This decoder has no ratio: it bounds the bytes
//! of one call, and the proxy's flow control bounds the rest.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use http_semantics::labelled;

use crate::limits;

labelled! {
    /// The reason why a compressed body ends before its end. The bytes before are correct.
    Broken {
        /// The bytes are not br.
        Damaged = "damaged";
        /// The body ends before the stream of br does.
        CutOff = "cut_off";
        /// One piece of the body decompresses to more than 40 MiB.
        Expansion = "expansion";
        /// The worker has no memory left for another window, or the window is larger than 16 MiB.
        Window = "window";
        /// The page is not the one that the ground encoded as a delta.
        Mismatch = "mismatch";
    }
}

/// The windows of all decoders of one worker, in bytes.
#[derive(Debug, Clone, Default)]
pub struct Windows(Rc<Cell<usize>>);

impl Windows {
    /// Returns true if no more br should be requested.
    pub fn are_many(&self) -> bool {
        self.0.get() > limits::MANY_WINDOW_BYTES
    }

    /// Reserves a window. None if it exceeds the limit.
    pub(crate) fn reserve(&self, bytes: usize) -> Option<Window> {
        let sum = self.0.get().saturating_add(bytes);
        (sum <= limits::MOST_WINDOW_BYTES).then(|| {
            self.0.set(sum);
            Window { all: self.clone(), bytes }
        })
    }
}

/// The reserved window of one decoder.
#[derive(Debug)]
pub(crate) struct Window {
    all: Windows,
    bytes: usize,
}

impl Drop for Window {
    fn drop(&mut self) {
        self.all.0.set(self.all.0.get().saturating_sub(self.bytes));
    }
}

/// Returns the size of the window that a stream declares in its first byte (RFC 7932 section 9.1). None for the
/// extension with larger windows, which is no part of the content encoding `br`.
fn window_bytes(first: u8) -> Option<usize> {
    let bits = match (first & 1, first >> 1 & 7, first >> 4 & 7) {
        (0, _, _) => 16,
        (_, 0, 0) => 17,
        (_, 0, 1) => return None,
        (_, 0, more) => 8 + u32::from(more),
        (_, more, _) => 17 + u32::from(more),
    };
    1_usize.checked_shl(bits)
}

type State = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

/// Takes compressed bytes, gives plain ones.
pub(crate) struct Decoder {
    windows: Windows,
    /// The state, with its window. None before the first byte, and after the end.
    state: Option<(Box<State>, Window)>,
    is_ended: bool,
    /// The bytes before the first, which the stream may refer to.
    base: Vec<u8>,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Decoder").field("is_ended", &self.is_ended).finish_non_exhaustive()
    }
}

/// The largest piece in which bytes are decompressed, in bytes.
const PIECE_BYTES: usize = 64 << 10;
/// The smallest piece.
const LEAST_PIECE_BYTES: usize = 1 << 10;

impl Decoder {
    pub(crate) fn new(windows: &Windows) -> Self {
        Self::with_base(windows, Vec::new())
    }

    /// Returns a decoder for a stream that refers to `base`.
    pub(crate) fn with_base(windows: &Windows, base: Vec<u8>) -> Self {
        Self { windows: windows.clone(), state: None, is_ended: false, base }
    }

    /// Appends what `packed` decompresses to. Returns the number of bytes read, which is smaller at the end of the
    /// stream.
    ///
    /// # Errors
    /// The bytes appended before the error are correct. The decoder must not be used again.
    pub(crate) fn write(&mut self, packed: &[u8], out: &mut Vec<u8>, most: usize) -> Result<usize, Broken> {
        let Some(&first) = packed.first() else { return Ok(0) };
        if self.is_ended {
            return Ok(0);
        }
        if self.state.is_none() {
            let window = window_bytes(first).and_then(|bytes| self.windows.reserve(bytes)).ok_or(Broken::Window)?;
            let alloc = StandardAlloc::default;
            let state = if self.base.is_empty() {
                BrotliState::new_strict(alloc(), alloc(), alloc())
            } else {
                let base = std::mem::take(&mut self.base).into();
                BrotliState::new_with_custom_dictionary(alloc(), alloc(), alloc(), base)
            };
            self.state = Some((Box::new(state), window));
        }
        let Some((state, _)) = &mut self.state else { return Ok(0) };
        let start = out.len();
        let piece_bytes = packed.len().saturating_mul(8).clamp(LEAST_PIECE_BYTES, PIECE_BYTES);
        let (mut in_left, mut in_at, mut total) = (packed.len(), 0, 0);
        loop {
            let mut at = out.len();
            out.resize(at + piece_bytes, 0);
            let mut left = piece_bytes;
            let result =
                BrotliDecompressStream(&mut in_left, &mut in_at, packed, &mut left, &mut at, out, &mut total, state);
            out.truncate(at);
            if out.len() - start > most {
                return Err(Broken::Expansion);
            }
            match result {
                // With a full piece, the decoder may hold more bytes that it has decompressed.
                BrotliResult::NeedsMoreInput if left > 0 => return Ok(in_at),
                BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
                BrotliResult::ResultSuccess => {
                    self.is_ended = true;
                    self.state = None;
                    return Ok(in_at);
                }
                BrotliResult::ResultFailure => return Err(Broken::Damaged),
            }
        }
    }

    /// Returns true if the stream has ended.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Ends the body.
    ///
    /// # Errors
    /// The stream of br has not ended. A body without any byte is complete: a response to HEAD has none.
    pub(crate) fn finish(&self) -> Result<(), Broken> {
        if self.state.is_some() { Err(Broken::CutOff) } else { Ok(()) }
    }
}

/// Decompresses a whole body to `most` bytes at most.
///
/// # Errors
/// The body is damaged or truncated, or longer.
pub fn decode(packed: &[u8], most: usize) -> Result<Vec<u8>, Broken> {
    let mut decoder = Decoder::new(&Windows::default());
    let mut out = Vec::new();
    decoder.write(packed, &mut out, most)?;
    if packed.is_empty() { Err(Broken::CutOff) } else { decoder.finish().map(|()| out) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use brotli::enc::BrotliEncoderParams;
    use proptest::prelude::*;

    use super::*;

    fn packed(plain: &[u8], quality: i32, window_bits: i32, flushed_bytes: usize) -> Vec<u8> {
        let params = BrotliEncoderParams { quality, lgwin: window_bits, ..BrotliEncoderParams::default() };
        let mut writer = brotli::CompressorWriter::with_params(Vec::new(), 4096, &params);
        for piece in plain.chunks(flushed_bytes.max(1)) {
            writer.write_all(piece).unwrap();
            writer.flush().unwrap();
        }
        writer.into_inner()
    }

    fn unpacked(packed: &[u8], split_bytes: usize) -> (Vec<u8>, Result<(), Broken>) {
        let windows = Windows::default();
        let mut decoder = Decoder::new(&windows);
        let mut out = Vec::new();
        for piece in packed.chunks(split_bytes.max(1)) {
            if let Err(broken) = decoder.write(piece, &mut out, limits::BYTES_AT_ONCE) {
                return (out, Err(broken));
            }
        }
        let end = decoder.finish();
        drop(decoder);
        assert_eq!(windows.0.get(), 0, "the window is given back");
        (out, end)
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(
            prop_oneof![Just(b"<p class=x>".to_vec()), any::<[u8; 3]>().prop_map(Vec::from)],
            0..400,
        )
        .prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_body_is_the_same_for_any_split(
            plain in text(), quality in 0..7, window in 10..24, flushed in 1_usize..5000, split in 1_usize..3000
        ) {
            let packed = packed(&plain, quality, window, flushed);
            prop_assert_eq!(unpacked(&packed, split), (plain.clone(), Ok(())));
            prop_assert_eq!(decode(&packed, limits::BYTES_AT_ONCE), Ok(plain));
        }

        #[test]
        fn of_a_truncated_body_come_correct_bytes_and_an_error(plain in text(), cut in 1_usize..100, split in 1_usize..99) {
            let packed = packed(&plain, 5, 18, 64);
            prop_assume!(packed.len() > 1);
            let cut = cut.min(packed.len() - 1);
            let (out, end) = unpacked(&packed[..packed.len() - cut], split);
            prop_assert!(plain.starts_with(&out));
            prop_assert_eq!(end, Err(Broken::CutOff));
        }

        #[test]
        fn no_byte_makes_it_panic_or_grow(junk in proptest::collection::vec(any::<u8>(), 0..600), split in 1_usize..99) {
            let (out, _) = unpacked(&junk, split);
            prop_assert!(out.len() <= (1 + junk.len().div_ceil(split)) * (limits::BYTES_AT_ONCE + PIECE_BYTES));
        }
    }

    #[test]
    fn the_first_byte_declares_the_window() {
        for bits in 10..=24 {
            let first = packed(b"text", 5, bits, 99)[0];
            let least = usize::try_from(bits).unwrap();
            assert_eq!(window_bytes(first), Some(1 << least), "{bits}");
        }
        assert_eq!(window_bytes(0x11), None, "a larger window");
    }

    #[test]
    fn a_body_of_1000_to_1_comes_whole_and_one_of_a_million_to_1_is_an_error() {
        let plain = vec![b' '; 16 << 20];
        let body = packed(&plain, 5, 20, 16 << 10);
        let (out, end) = unpacked(&body, 16 << 10);
        assert_eq!((out.len(), end), (plain.len(), Ok(())));
        let bomb = packed(&vec![0; 48 << 20], 1, 24, usize::MAX);
        assert!(bomb.len() < 16 << 10, "{}", bomb.len());
        let (out, end) = unpacked(&bomb, 16 << 10);
        assert_eq!(end, Err(Broken::Expansion));
        assert!(out.len() <= limits::BYTES_AT_ONCE + PIECE_BYTES);
        assert_eq!(decode(&bomb, 1 << 20), Err(Broken::Expansion));
    }

    #[test]
    fn every_flushed_piece_is_readable_when_it_arrives() {
        let text = b"<li>a line of a page</li>".repeat(900);
        let params = BrotliEncoderParams { quality: 5, lgwin: 20, ..BrotliEncoderParams::default() };
        let mut writer = brotli::CompressorWriter::with_params(Vec::new(), 4096, &params);
        let mut decoder = Decoder::new(&Windows::default());
        let (mut out, mut sent, mut expected) = (Vec::new(), 0, 0);
        for piece in text.chunks(9000) {
            expected += piece.len();
            writer.write_all(piece).unwrap();
            writer.flush().unwrap();
            decoder.write(&writer.get_ref()[sent..], &mut out, limits::BYTES_AT_ONCE).unwrap();
            sent = writer.get_ref().len();
            assert_eq!(out.len(), expected);
        }
    }

    #[test]
    fn windows_of_all_decoders_are_bounded() {
        let windows = Windows::default();
        let body = packed(b"text", 5, 24, 99);
        let mut decoders = Vec::new();
        let broken = loop {
            let mut decoder = Decoder::new(&windows);
            if let Err(broken) = decoder.write(&body[..1], &mut Vec::new(), 1) {
                break broken;
            }
            decoders.push(decoder);
        };
        assert_eq!((broken, decoders.len()), (Broken::Window, limits::MOST_WINDOW_BYTES >> 24));
        assert!(windows.are_many());
        drop(decoders);
        assert!(!windows.are_many());
    }

    #[test]
    fn bytes_behind_the_end_are_ignored_and_an_empty_body_is_empty() {
        let mut body = packed(b"text", 5, 18, 99);
        body.extend(b"more");
        for split in [1, 99] {
            assert_eq!(unpacked(&body, split), (b"text".to_vec(), Ok(())));
        }
        assert_eq!(unpacked(b"", 1), (Vec::new(), Ok(())));
        assert_eq!(decode(b"", 9), Err(Broken::CutOff));
        assert_eq!(unpacked(b"not br at all", 99).1, Err(Broken::Damaged));
    }
}
