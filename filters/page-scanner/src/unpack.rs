//! Bodies that come compressed by gzip (RFC 1952), decompressed as they stream by.
//!
//! The proxy in front of this crate could decompress them too, but silently drops data that it cannot decompress. A page
//! that is only labelled as compressed arrives empty, and one that breaks off arrives as if it were whole. Here the first
//! goes on as the plain text it is. The second ends as [`Broken`], so that it can be made to look broken.
//!
//! Only gzip is supported. It remembers 32 KiB, so that a page of any size takes less than 70 KiB more. Brotli may need a
//! window of 16 MiB.

use std::fmt;

use flate2::{Decompress, FlushDecompress, Status};

/// Identification and method (deflate, the only one there is).
const MAGIC: [u8; 3] = [0x1F, 0x8B, 8];
const HAS_CHECKSUM: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;
/// Time, extra flags, operating system.
const FIXED_BYTES: usize = 6;
/// Checksum and length behind the data.
const TRAILER_BYTES: usize = 8;

/// How much is decompressed at a time, in bytes.
const PIECE_BYTES: usize = 16 * 1024;
/// The most that may come of one call. A chunk from an origin has 32 KiB (`transport.connection_buffer`), and deflate makes
/// at most 1,032 bytes of one: a valid page never reaches this limit there.
const UNPACKED_BYTES_AT_ONCE: usize = 40 * 1024 * 1024;

/// The content encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// `Content-Encoding: gzip`, or so it says.
    Gzip,
}

/// Why a compressed body ends before its end. All that came of it until then is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The compressed data make no sense from here on.
    Damaged,
    /// They end in the middle.
    CutOff,
    /// More came of one piece than a page can mean.
    Bomb,
}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Damaged => "its gzip data are damaged",
            Self::CutOff => "its gzip data end in the middle",
            Self::Bomb => "a piece of its gzip data becomes more than 40 MiB",
        })
    }
}

/// Takes compressed bytes, gives plain ones.
#[derive(Debug)]
pub struct Unpacker {
    state: State,
    /// The parts of the header that are still to come.
    flags: u8,
    inflate: Decompress,
}

/// The part that the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The beginning, of which so much has come.
    Magic(usize),
    /// Not compressed at all.
    Plain,
    Flags,
    /// Fields of a known length that say nothing of interest.
    Skip(usize),
    ExtraLength,
    ExtraLengthHigh(u8),
    /// A field that ends with a zero.
    Text,
    Data,
    /// So much of what follows the data is still to come. Never looked at: a wrong checksum is no reason to lose a page.
    Trailer(usize),
    /// The beginning of another member, or of something that is none and is dropped.
    NextMagic(usize),
    Dropped,
}

impl Default for Unpacker {
    fn default() -> Self {
        Self::new()
    }
}

impl Unpacker {
    /// Returns a decoder for a body that is labelled as gzip.
    pub fn new() -> Self {
        Self { state: State::Magic(0), flags: 0, inflate: Decompress::new(false) }
    }

    /// Takes the next bytes; `plain` receives all that comes of them, in pieces. After an error nothing more may come.
    ///
    /// # Errors
    /// The data are damaged, or become more than 40 MiB at once.
    pub fn write(&mut self, packed: &[u8], mut plain: impl FnMut(&[u8])) -> Result<(), Broken> {
        let mut room = UNPACKED_BYTES_AT_ONCE;
        let mut rest = packed;
        while let Some((&byte, after)) = rest.split_first() {
            let next = match self.state {
                State::Data => {
                    rest = self.data(rest, &mut room, &mut plain)?;
                    continue;
                }
                State::Plain => {
                    plain(rest);
                    return Ok(());
                }
                State::Dropped => return Ok(()),
                State::Magic(seen) if MAGIC.get(seen) != Some(&byte) => {
                    plain(MAGIC.get(..seen).unwrap_or_default());
                    self.state = State::Plain;
                    continue;
                }
                State::NextMagic(seen) if MAGIC.get(seen) != Some(&byte) => State::Dropped,
                State::Magic(seen) | State::NextMagic(seen) if seen + 1 == MAGIC.len() => State::Flags,
                State::Magic(seen) => State::Magic(seen + 1),
                State::NextMagic(seen) => State::NextMagic(seen + 1),
                State::Flags => {
                    self.flags = byte;
                    State::Skip(FIXED_BYTES)
                }
                State::ExtraLength => State::ExtraLengthHigh(byte),
                State::ExtraLengthHigh(low) => match usize::from(u16::from_le_bytes([low, byte])) {
                    0 => self.next_field(),
                    length => State::Skip(length),
                },
                State::Skip(1) => self.next_field(),
                State::Skip(left) => State::Skip(left.saturating_sub(1)),
                State::Text if byte == 0 => self.next_field(),
                State::Text => State::Text,
                State::Trailer(1) => State::NextMagic(0),
                State::Trailer(left) => State::Trailer(left.saturating_sub(1)),
            };
            self.state = next;
            rest = after;
        }
        Ok(())
    }

    /// There is no more. An empty body is whole, and so is one that ends in what is not looked at.
    ///
    /// # Errors
    /// The data end in the middle.
    pub fn finish(&mut self, mut plain: impl FnMut(&[u8])) -> Result<(), Broken> {
        match self.state {
            // Too short to be packed.
            State::Magic(seen) => plain(MAGIC.get(..seen).unwrap_or_default()),
            State::Plain | State::Trailer(_) | State::NextMagic(_) | State::Dropped => {}
            _ => return Err(Broken::CutOff),
        }
        self.state = State::Dropped;
        Ok(())
    }

    fn next_field(&mut self) -> State {
        for (flag, state) in [
            (HAS_EXTRA, State::ExtraLength),
            (HAS_NAME, State::Text),
            (HAS_COMMENT, State::Text),
            (HAS_CHECKSUM, State::Skip(2)),
        ] {
            if self.flags & flag != 0 {
                self.flags &= !flag;
                return state;
            }
        }
        State::Data
    }

    /// Decompresses up to the end of the data, and returns the bytes behind them.
    fn data<'p>(
        &mut self,
        mut packed: &'p [u8],
        room: &mut usize,
        plain: &mut impl FnMut(&[u8]),
    ) -> Result<&'p [u8], Broken> {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let (taken, given) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self.inflate.decompress(packed, &mut piece, FlushDecompress::None);
            let status = status.map_err(|_| Broken::Damaged)?;
            let taken = usize::try_from(self.inflate.total_in() - taken).unwrap_or(usize::MAX);
            let given = usize::try_from(self.inflate.total_out() - given).unwrap_or(usize::MAX);
            packed = packed.get(taken..).unwrap_or_default();
            *room = room.checked_sub(given).ok_or(Broken::Bomb)?;
            plain(piece.get(..given).unwrap_or_default());
            if status == Status::StreamEnd {
                self.inflate.reset(false);
                self.state = State::Trailer(TRAILER_BYTES);
                return Ok(packed);
            }
            // What does not fit into the piece is given by the next call.
            if taken == 0 && given == 0 {
                return if packed.is_empty() { Ok(packed) } else { Err(Broken::Damaged) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::GzEncoder;
    use flate2::{Compression, GzBuilder};
    use proptest::prelude::*;
    use std::io::Write;

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn page() -> Vec<u8> {
        (0..2000).flat_map(|line| format!("<p>line {line} of a page</p>\n").into_bytes()).collect()
    }

    fn unpack(packed: &[u8], piece: usize) -> (Vec<u8>, Result<(), Broken>) {
        let mut plain = Vec::new();
        let mut unpacker = Unpacker::new();
        for chunk in packed.chunks(piece) {
            if let Err(broken) = unpacker.write(chunk, |piece| plain.extend_from_slice(piece)) {
                return (plain, Err(broken));
            }
        }
        let end = unpacker.finish(|piece| plain.extend_from_slice(piece));
        (plain, end)
    }

    #[test]
    fn compressed_data_is_decompressed_however_it_is_cut() {
        let page = page();
        let mut with_fields =
            GzBuilder::new().extra([7; 300]).filename("a.html").comment("c").write(Vec::new(), Compression::fast());
        with_fields.write_all(&page).unwrap();
        let with_fields = with_fields.finish().unwrap();
        let members = [gzip(&page[..1000]), gzip(&[]), gzip(&page[1000..])].concat();
        for packed in [gzip(&page), with_fields, members] {
            for piece in [1, 2, 3, 7, 100, 4096, usize::MAX] {
                assert_eq!(unpack(&packed, piece), (page.clone(), Ok(())), "in pieces of {piece}");
            }
        }
        assert_eq!(unpack(&gzip(&[]), 1), (Vec::new(), Ok(())));
    }

    #[test]
    fn data_that_is_only_labelled_as_compressed_loses_no_byte() {
        for plain in [&b""[..], b"\x1F", b"\x1F\x8B", b"\x1F\x8B\x07...", b"\x1Fx", b"<!doctype html><p>plain"] {
            for piece in [1, 2, 100] {
                assert_eq!(unpack(plain, piece), (plain.to_vec(), Ok(())));
            }
        }
    }

    #[test]
    fn bytes_after_the_compressed_data_are_not_needed_and_not_returned() {
        let (page, packed) = (page(), gzip(&page()));
        let data = packed.len() - TRAILER_BYTES;
        for end in data..=packed.len() {
            assert_eq!(unpack(&packed[..end], 999), (page.clone(), Ok(())), "{end} of {}", packed.len());
        }
        for behind in [&[0; 700][..], b"\x1F\x8Bgarbage", b"\x1F"] {
            assert_eq!(unpack(&[&packed, behind].concat(), 999), (page.clone(), Ok(())));
        }
        let mut wrong = packed;
        wrong[data] ^= 1;
        assert_eq!(unpack(&wrong, 999), (page, Ok(())), "a wrong checksum");
    }

    #[test]
    fn truncated_or_malformed_data_gives_a_prefix_and_is_known_as_broken() {
        let (page, packed) = (page(), gzip(&page()));
        for end in (3..packed.len() - TRAILER_BYTES).step_by(97) {
            let (plain, outcome) = unpack(&packed[..end], 64);
            assert!(page.starts_with(&plain));
            assert_eq!(outcome, Err(Broken::CutOff), "{end} of {}", packed.len());
        }
        let half = packed.len() / 2;
        let damaged = [&packed[..half], &[0xFF; 600]].concat();
        let (plain, outcome) = unpack(&damaged, 64);
        assert!(page.starts_with(&plain[..1000]), "what came before is given");
        assert!(outcome.is_err());
    }

    #[test]
    fn a_bomb_is_refused_and_a_large_page_is_decompressed_in_pieces() {
        let large = gzip(&vec![b' '; UNPACKED_BYTES_AT_ONCE + (1 << 20)]);
        let (plain, outcome) = unpack(&large, usize::MAX);
        assert_eq!(outcome, Err(Broken::Bomb));
        assert!(plain.len() <= UNPACKED_BYTES_AT_ONCE);
        assert_eq!(unpack(&large, 4096), (vec![b' '; UNPACKED_BYTES_AT_ONCE + (1 << 20)], Ok(())));
    }

    proptest! {
        #[test]
        fn any_bytes_end_somehow_and_the_same_however_they_are_cut(
            mut bytes in prop::collection::vec(any::<u8>(), 0..400), packed in any::<bool>(), piece in 1_usize..50,
        ) {
            if packed {
                bytes.splice(0..0, [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0]);
            }
            let whole = unpack(&bytes, usize::MAX);
            let pieces = unpack(&bytes, piece);
            prop_assert_eq!(whole.1.is_ok(), pieces.1.is_ok());
            if whole.1.is_ok() {
                prop_assert_eq!(whole.0, pieces.0);
            }
        }
    }
}
