//! Both coders.
//!
//! The encoder of `brotli` 9.1.1 panics on a copy of one byte ("len is 24 but the index is 65535"), because its codes for
//! copies begin at two. It ends every copy at the end of the dictionary, so a match that starts at the last byte of the
//! dictionary becomes such a copy. All of its qualities do this. Three rules keep that match from being found:
//! - The encoder's copy of the base ends in [`MARK`] instead of the base's last byte. No match reaches it while the page has
//!   no such byte. The receiver's base is unchanged, because no copy refers to that byte.
//! - From the first [`MARK`] of a page on, the page is encoded without its base ([`Sender::leave_base`]).
//! - So is the rest of a page beyond [`RING_BYTES`], where the encoder mistakes bytes of the page for the dictionary.

use std::fmt;

use brotli::enc::StandardAlloc;
use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderStateStruct};
use sha2::{Digest, Sha256};

use super::bases::{Name, cut};
use crate::decoder::{Broken, Decoder, Window, Windows};
use crate::limits;

/// The window of a delta: 1 MiB holds the largest base and as much of the page.
const WINDOW_BITS: i32 = 20;
const QUALITY: i32 = 5;
/// The quality without a base. Quality 1 compresses each piece by itself and knows no dictionary.
const QUALITY_WITHOUT_BASE: i32 = 1;
/// A byte that no text has in any encoding of the web. A page that has it is still encoded right, in more bytes.
const MARK: u8 = 0x05;
/// The bytes of base and page that the encoder holds before it overwrites the first ones.
const RING_BYTES: usize = 2 << WINDOW_BITS;
/// The size of the pieces in which the encoder hands out its bytes.
const PIECE_BYTES: usize = 16 << 10;

/// Encodes a page as it streams by.
pub struct Sender {
    state: Box<BrotliEncoderStateStruct<StandardAlloc>>,
    digest: Sha256,
    /// The bytes of base and page until now. None without a base.
    seen: Option<usize>,
    /// Counts the memory until the page has ended.
    _memory: Window,
}

impl fmt::Debug for Sender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Sender")
    }
}

impl Sender {
    /// Returns an encoder of a page against `base`. An empty base gives plain br and a name. None while the worker has no
    /// memory for another one.
    pub fn new(base: &[u8], windows: &Windows) -> Option<Self> {
        let memory = if windows.are_many() { None } else { windows.reserve(limits::SENDER_BYTES) };
        let mut state = Box::new(BrotliEncoderStateStruct::new(StandardAlloc::default()));
        state.params.quality = QUALITY;
        state.params.lgwin = WINDOW_BITS;
        state.params.mode = brotli::enc::backward_references::BrotliEncoderMode::BROTLI_MODE_TEXT;
        let mut dictionary = base.to_vec();
        // The receiver's addresses of the words that br knows lie behind the base.
        state.params.use_dictionary = base.is_empty();
        // Of one byte, the encoder would make no dictionary, but a stream that others can be joined to.
        let seen = (dictionary.len() > 1).then_some(dictionary.len());
        if let (Some(bytes), Some(last)) = (seen, dictionary.last_mut()) {
            *last = MARK;
            state.set_custom_dictionary(bytes, &dictionary);
        }
        Some(Self { state, digest: Sha256::new(), seen, _memory: memory? })
    }

    /// Appends the encoded form of a piece. The receiver can read all of the piece.
    pub fn write(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.digest.update(piece);
        if !piece.is_empty() {
            self.leave_base(piece);
            self.run(BrotliEncoderOperation::BROTLI_OPERATION_FLUSH, piece, out);
        }
    }

    /// Encodes the rest of the page without the base if `piece` could make the encoder panic. Every piece is flushed, so
    /// the quality may change between two of them. It never changes back, because quality 1 leaves the encoder's list of
    /// last distances as it was.
    fn leave_base(&mut self, piece: &[u8]) {
        let Some(seen) = &mut self.seen else { return };
        *seen = seen.saturating_add(piece.len());
        if *seen > RING_BYTES || piece.contains(&MARK) {
            self.seen = None;
            self.state.params.quality = QUALITY_WITHOUT_BASE;
        }
    }

    /// Appends the end of the page. Returns the name of the page.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Name {
        self.run(BrotliEncoderOperation::BROTLI_OPERATION_FINISH, &[], out);
        let name = cut(&self.digest.finalize());
        out.extend_from_slice(&name);
        name
    }

    fn run(&mut self, operation: BrotliEncoderOperation, piece: &[u8], out: &mut Vec<u8>) {
        let (mut in_left, mut in_at) = (piece.len(), 0);
        loop {
            let mut at = out.len();
            out.resize(at + PIECE_BYTES, 0);
            let mut left = PIECE_BYTES;
            let is_done = self.state.compress_stream(
                operation,
                &mut in_left,
                piece,
                &mut in_at,
                &mut left,
                out,
                &mut at,
                &mut None,
                &mut |_, _, _, _| (),
            );
            out.truncate(at);
            if !is_done || (in_left == 0 && !self.state.has_more_output()) {
                return;
            }
        }
    }
}

/// Decodes a page as it streams by.
#[derive(Debug)]
pub struct Receiver {
    decoder: Decoder,
    digest: Sha256,
    /// The name behind the stream, as far as it has arrived.
    name: Vec<u8>,
}

impl Receiver {
    /// Returns a decoder of a page that was encoded against `base`.
    pub fn new(base: Vec<u8>, windows: &Windows) -> Self {
        Self { decoder: Decoder::with_base(windows, base), digest: Sha256::new(), name: Vec::new() }
    }

    /// Appends the bytes of the page that `packed` decodes to, `most` at most.
    ///
    /// # Errors
    /// The stream is damaged, or too long.
    pub fn write(&mut self, packed: &[u8], out: &mut Vec<u8>, most: usize) -> Result<(), Broken> {
        let start = out.len();
        let read = self.decoder.write(packed, out, most)?;
        self.digest.update(out.get(start..).unwrap_or_default());
        self.name.extend_from_slice(packed.get(read..).unwrap_or_default());
        if self.name.len() > size_of::<Name>() { Err(Broken::Damaged) } else { Ok(()) }
    }

    /// Ends the page, and checks its name. Returns the name.
    ///
    /// # Errors
    /// The page is incomplete, or another one than the sender's.
    pub fn finish(self) -> Result<Name, Broken> {
        if !self.decoder.is_ended() || self.name.len() < size_of::<Name>() {
            return Err(Broken::CutOff);
        }
        let name = cut(&self.digest.finalize());
        if self.name == name { Ok(name) } else { Err(Broken::Mismatch) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(base: &[u8], page: &[u8], piece_bytes: usize) -> Vec<u8> {
        let mut sender = Sender::new(base, &Windows::default()).unwrap();
        let mut out = Vec::new();
        for piece in page.chunks(piece_bytes) {
            sender.write(piece, &mut out);
        }
        sender.finish(&mut out);
        out
    }

    fn received(base: &[u8], packed: &[u8], piece_bytes: usize) -> Result<Vec<u8>, Broken> {
        let mut receiver = Receiver::new(base.to_vec(), &Windows::default());
        let mut out = Vec::new();
        for piece in packed.chunks(piece_bytes) {
            receiver.write(piece, &mut out, limits::BYTES_AT_ONCE)?;
        }
        receiver.finish().map(|_| out)
    }

    /// Text in which matches start at every byte of the base.
    fn short_words() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(prop_oneof![40 => Just(b'a'), 40 => Just(b'b'), 1 => Just(MARK)], 0..120)
    }

    fn page() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            Just(b"<div class=story><a href=/2003/".to_vec()),
            Just(b"</a></div><p>".to_vec()),
            any::<[u8; 4]>().prop_map(Vec::from)
        ];
        proptest::collection::vec(part, 0..900).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn a_page_that_resumes_its_base_at_any_byte_arrives(
            base in short_words(), page in short_words(), piece in 1_usize..60
        ) {
            prop_assert_eq!(received(&base, &sent(&base, &page, piece), 999), Ok(page));
        }
    }

    #[test]
    fn a_match_with_the_last_byte_of_the_base_does_not_break_the_encoder() {
        for page in ["aaaab", "<aaaab", "aaaab0123456789", "a-aaaab0123456789"] {
            for base in ["a", "ba", "<p>the base ends in a"] {
                let (base, page) = (base.as_bytes(), page.as_bytes());
                assert_eq!(received(base, &sent(base, page, 99), 99).as_deref(), Ok(page), "{base:?} {page:?}");
            }
        }
    }

    #[test]
    fn a_page_with_the_mark_and_a_page_beyond_the_ring_arrive() {
        let line = |number: usize| format!("<li>{}</li>", number.wrapping_mul(2_654_435_761));
        let base = (0..9000).map(line).collect::<String>().into_bytes();
        let marked = [&base[..50_000], &[MARK], &base[..]].concat();
        let long = base.repeat(RING_BYTES / base.len() + 2);
        for page in [marked, long] {
            for piece in [1 << 14, 1 << 20] {
                let packed = sent(&base, &page, piece);
                assert!(packed.len() * 3 < page.len(), "{} of {}", packed.len(), page.len());
                assert_eq!(received(&base, &packed, 9999).as_deref(), Ok(&*page));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_page_arrives_byte_for_byte(base in page(), page in page(), piece in 1_usize..9000, split in 1_usize..3000) {
            prop_assert_eq!(received(&base, &sent(&base, &page, piece), split), Ok(page));
        }

        #[test]
        fn a_wrong_base_never_gives_a_wrong_page(base in page(), other in page(), page in page()) {
            if let Ok(got) = received(&other, &sent(&base, &page, 4096), 999) {
                prop_assert_eq!(got, page);
            }
        }

        #[test]
        fn a_damaged_or_truncated_delta_never_looks_complete(
            base in page(), page in page(), at in any::<prop::sample::Index>(), bit in 0_u32..8
        ) {
            let packed = sent(&base, &page, 4096);
            let at = at.index(packed.len());
            prop_assert!(received(&base, &packed[..at], 500).is_err());
            let mut damaged = packed;
            damaged[at] ^= 1_u8 << bit;
            if let Ok(got) = received(&base, &damaged, 500) {
                prop_assert_eq!(got, page);
            }
        }
    }

    #[test]
    fn every_flushed_piece_is_readable_when_it_arrives() {
        let (base, page) = (b"<p>a page of the site</p>".repeat(900), b"<p>another page of the site</p>".repeat(900));
        let mut sender = Sender::new(&base, &Windows::default()).unwrap();
        let mut receiver = Receiver::new(base.clone(), &Windows::default());
        let (mut got, mut sent_bytes) = (Vec::new(), 0);
        for piece in page.chunks(4000) {
            let mut packed = Vec::new();
            sender.write(piece, &mut packed);
            receiver.write(&packed, &mut got, 1 << 20).unwrap();
            sent_bytes += piece.len();
            assert_eq!(got.len(), sent_bytes);
        }
    }

    #[test]
    fn a_page_like_its_base_takes_a_fraction_of_its_bytes() {
        let base: Vec<u8> = (0..4000_u32)
            .flat_map(|one| format!("<li>{}</li>", one.wrapping_mul(2_654_435_761)).into_bytes())
            .collect();
        let page = [b"<h1>new</h1>", &*base].concat();
        assert!(sent(&base, &page, 16 << 10).len() * 20 < sent(b"", &page, 16 << 10).len());
    }

    #[test]
    fn encoders_of_all_pages_are_bounded() {
        let windows = Windows::default();
        let senders: Vec<Sender> = std::iter::from_fn(|| Sender::new(b"base", &windows)).collect();
        assert_eq!(senders.len(), limits::MANY_WINDOW_BYTES / limits::SENDER_BYTES + 1);
        drop(senders);
        assert!(Sender::new(b"base", &windows).is_some());
    }
}
