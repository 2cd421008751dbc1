//! Reasons why a message cannot be decompressed or a block cannot be compressed. The type also says which of them a
//! retry can cure.

use std::fmt;

/// Why a message cannot be decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// A byte that no message of any version contains.
    Alphabet(u8),
    /// An empty field.
    Empty,
    /// The format number of a version or dictionary that is unknown here.
    UnknownFormat(u8),
    /// A kind of message that does not belong in this place.
    UnexpectedKind(u8),
    /// The message refers to a session, a client or exchanges that this end does not hold, or holds no longer.
    UnknownHistory,
    /// The decompressed headers would exceed [`crate::limits`].
    TooLarge,
    /// The message holds a value that no encoder writes; the text names it.
    Malformed(&'static str),
    /// The decompressed headers differ from the original ones: the two ends disagree, or bytes are missing.
    CheckFailed,
}

impl DecodeError {
    /// Returns true if the same headers would arrive when sent again without references.
    pub fn cured_without_references(self) -> bool {
        matches!(self, Self::UnknownHistory | Self::CheckFailed | Self::Malformed(_))
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alphabet(byte) => write!(formatter, "byte 0x{byte:02x} is not in the alphabet of compressed fields"),
            Self::Empty => formatter.write_str("the compressed field is empty"),
            Self::UnknownFormat(format) => {
                write!(formatter, "format {format} is unknown: the peer is newer or older")
            }
            Self::UnexpectedKind(kind) => write!(formatter, "a message of kind {kind} is not expected here"),
            Self::UnknownHistory => formatter.write_str("refers to exchanges that this end does not hold"),
            Self::TooLarge => formatter.write_str("the decompressed headers exceed the limits"),
            Self::Malformed(what) => write!(formatter, "malformed: {what}"),
            Self::CheckFailed => {
                formatter.write_str("the decompressed headers fail the check: the ends disagree or bytes are missing")
            }
        }
    }
}

impl std::error::Error for DecodeError {}

/// Why a block travels plain instead of compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unpackable {
    /// More fields or bytes than [`crate::limits`] allow.
    TooLarge,
    /// The compressed field would not be smaller than the headers.
    NoGain,
    /// A field name that HTTP does not allow.
    NotHttp,
}
