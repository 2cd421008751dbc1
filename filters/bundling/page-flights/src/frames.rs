//! Parcels: the bodies of responses to slots. `filters/bundling/README.md` describes the format.

use crate::digest::{Ident, Mark};
use crate::limits;
use crate::wire::{Malformed, Reader, put_bytes, put_length, put_number};

/// The first byte of a parcel: its format. Parcels of another format are not read.
const VERSION: u8 = 1;
/// The media type of parcels with text. The proxy's compressor compresses it.
pub(crate) const TEXT_PARCEL: &[u8] = b"text/x-longhaul-parcel";
/// The media type of all other parcels.
pub(crate) const PARCEL: &[u8] = b"application/x-longhaul-parcel";

const ANNOUNCED: u8 = 1;
const OBJECT: u8 = 2;
const REFERENCE: u8 = 3;
const WITHDRAWN: u8 = 4;
const END: u8 = 5;
const VALID: u8 = 6;

/// One message of the ground to the remote. An index in the flight's manifest names an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// Objects from index `first` on are on their way.
    Announced { first: usize, marks: Vec<Mark> },
    /// One of these objects. `head` holds lasting headers, `moment` those of this response alone (its date and age).
    Object { index: usize, ident: Ident, head: &'a [u8], moment: &'a [u8], body: &'a [u8] },
    /// An object that the remote has already.
    Reference { index: usize, ident: Ident, moment: &'a [u8] },
    /// An object that will not come.
    Withdrawn { index: usize },
    /// Nothing more will come.
    End,
    /// An object that the cache of the remote has. `lines` say what a 304 would say (`object_rules::validation`). Only a remote
    /// that has named its cache gets such frames.
    Valid { index: usize, lines: &'a [u8] },
}

/// Returns the beginning of a parcel.
pub(crate) fn begin() -> Vec<u8> {
    vec![VERSION]
}

impl Frame<'_> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Announced { first, marks } => {
                out.push(ANNOUNCED);
                put_length(out, *first);
                put_length(out, marks.len());
                for mark in marks {
                    out.extend_from_slice(mark);
                }
            }
            Self::Object { index, ident, head, moment, body } => {
                out.push(OBJECT);
                put_length(out, *index);
                out.extend_from_slice(ident);
                for part in [head, moment, body] {
                    put_bytes(out, part);
                }
            }
            Self::Reference { index, ident, moment } => {
                out.push(REFERENCE);
                put_length(out, *index);
                out.extend_from_slice(ident);
                put_bytes(out, moment);
            }
            Self::Withdrawn { index } => {
                out.push(WITHDRAWN);
                put_length(out, *index);
            }
            Self::End => {
                out.push(END);
                put_number(out, 0);
            }
            Self::Valid { index, lines } => {
                out.push(VALID);
                put_length(out, *index);
                put_bytes(out, lines);
            }
        }
    }
}

/// Returns the frames of a parcel. They end with an error where the parcel breaks the format. The frames before it are
/// valid.
pub(crate) fn read(parcel: &[u8]) -> impl Iterator<Item = Result<Frame<'_>, Malformed>> {
    let mut reader = Reader(parcel);
    let mut broken = reader.byte() != Ok(VERSION);
    let mut wrong_version = broken;
    std::iter::from_fn(move || {
        if std::mem::take(&mut wrong_version) {
            return Some(Err(Malformed));
        }
        if broken || reader.is_empty() {
            return None;
        }
        let frame = frame(&mut reader);
        broken = frame.is_err();
        Some(frame)
    })
}

fn frame<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
    let kind = reader.byte()?;
    let index = reader.length()?;
    if index >= limits::ENTRIES {
        return Err(Malformed);
    }
    Ok(match kind {
        ANNOUNCED => {
            let count = reader.length()?;
            if count > limits::ENTRIES - index {
                return Err(Malformed);
            }
            let marks = (0..count).map(|_| reader.array()).collect::<Result<_, _>>()?;
            Frame::Announced { first: index, marks }
        }
        OBJECT => {
            let ident = reader.array()?;
            Frame::Object { index, ident, head: reader.bytes()?, moment: reader.bytes()?, body: reader.bytes()? }
        }
        REFERENCE => Frame::Reference { index, ident: reader.array()?, moment: reader.bytes()? },
        WITHDRAWN => Frame::Withdrawn { index },
        END => Frame::End,
        VALID => Frame::Valid { index, lines: reader.bytes()? },
        _ => return Err(Malformed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all() -> Vec<Frame<'static>> {
        vec![
            Frame::Announced { first: 3, marks: vec![[7; 16], [8; 16]] },
            Frame::Object { index: 3, ident: [1; 24], head: b"head", moment: b"", body: b"\0body" },
            Frame::Reference { index: 4, ident: [2; 24], moment: b"m" },
            Frame::Withdrawn { index: limits::ENTRIES - 1 },
            Frame::Valid { index: 5, lines: b"etag:\"a\"\n" },
            Frame::End,
        ]
    }

    fn parcel() -> Vec<u8> {
        let mut parcel = begin();
        for frame in all() {
            frame.write(&mut parcel);
        }
        parcel
    }

    #[test]
    fn a_parcel_reads_back_as_it_was_written() {
        assert_eq!(read(&parcel()).collect::<Result<Vec<_>, _>>(), Ok(all()));
    }

    #[test]
    fn a_parcel_that_breaks_off_gives_what_came_before() {
        let whole = parcel();
        for length in 0..whole.len() {
            let frames: Vec<_> = read(&whole[..length]).collect();
            let good = frames.iter().filter_map(|frame| frame.as_ref().ok());
            assert!(good.zip(all()).all(|(read, written)| *read == written), "{length}");
        }
    }

    #[test]
    fn another_version_and_an_index_beyond_the_limit_are_refused() {
        let mut other = parcel();
        other[0] = 9;
        assert_eq!(read(&other).collect::<Vec<_>>(), [Err(Malformed)]);
        let mut far = begin();
        Frame::Withdrawn { index: limits::ENTRIES }.write(&mut far);
        assert_eq!(read(&far).collect::<Vec<_>>(), [Err(Malformed)]);
        let mut many = begin();
        Frame::Announced { first: limits::ENTRIES - 1, marks: vec![[0; 16]; 2] }.write(&mut many);
        assert_eq!(read(&many).collect::<Vec<_>>(), [Err(Malformed)]);
    }

    proptest! {
        #[test]
        fn hostile_bytes_end_and_do_not_grow(bytes: Vec<u8>) {
            let mut parcel = begin();
            parcel.extend_from_slice(&bytes);
            prop_assert!(read(&parcel).count() <= bytes.len() + 1);
        }
    }
}
