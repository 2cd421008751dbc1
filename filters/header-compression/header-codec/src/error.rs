//! Why a message could not be unpacked or a block not be packed. Which of them a retry can cure is part of the type.

use std::fmt;

/// A message that cannot be turned back into headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// A byte that no message of any version contains.
    Alphabet(u8),
    /// Nothing there.
    Empty,
    /// The format number of another version or dictionary than the ones known here.
    UnknownFormat(u8),
    /// A message of another kind than the place it came in.
    UnexpectedKind(u8),
    /// It refers to a session, a client or exchanges that are not, or no longer, held here.
    UnknownHistory,
    /// The headers it stands for would be larger than [`crate::limits`] allow.
    TooLarge,
    /// It says something that no encoder says; the text names what.
    Malformed(&'static str),
    /// It unpacked, but not to what was packed: the two ends disagree, or bytes are missing.
    CheckFailed,
}

impl DecodeError {
    /// Whether the same headers would arrive if they were sent again without references.
    pub fn cured_without_references(self) -> bool {
        matches!(self, Self::UnknownHistory | Self::CheckFailed | Self::Malformed(_))
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alphabet(byte) => write!(formatter, "byte 0x{byte:02x} is not of the packed alphabet"),
            Self::Empty => formatter.write_str("the packed field is empty"),
            Self::UnknownFormat(format) => {
                write!(formatter, "format {format} is not known here: the peer is newer or older")
            }
            Self::UnexpectedKind(kind) => write!(formatter, "a message of kind {kind} does not belong here"),
            Self::UnknownHistory => formatter.write_str("refers to history that is not held here"),
            Self::TooLarge => formatter.write_str("unpacks to more than the limits allow"),
            Self::Malformed(what) => write!(formatter, "malformed: {what}"),
            Self::CheckFailed => formatter.write_str("does not unpack to what was packed"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// A block that is not packed and travels plain instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unpackable {
    /// More fields or bytes than [`crate::limits`] allow.
    TooLarge,
    /// The packed field would not be smaller than the headers.
    NoGain,
    /// A field name that HTTP does not allow.
    NotHttp,
}
