//! Messages: what goes before and after a block, so that the other end knows what it refers to.
//!
//! The first digit says the kind and the format; a format stands for a version of the wire format together with a
//! dictionary. README.md describes all of it by byte.

use crate::coder::{Coder, number, salt, signed};
use crate::digits;
use crate::error::DecodeError;
use crate::hash::mix;

/// The format this crate writes: version 1, dictionary 1.
pub const FORMAT: u8 = 1;
/// What kinds and formats share a digit by.
const KINDS: u8 = 8;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request that refers to nothing but the dictionary.
    Opening = 0,
    /// A request that refers to a view.
    Following = 1,
    /// A response.
    Answer = 2,
    /// The ground could not unpack the request.
    Refusal = 3,
    /// "I speak this."
    Hello = 4,
}

/// Why the ground refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It does not speak this format.
    Format,
    /// It does not hold what the request refers to; the same request without references will do.
    History,
    /// It is no message, or says too much.
    Message,
}

impl From<DecodeError> for Refusal {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::UnknownFormat(_) => Self::Format,
            _ if error.cured_without_references() => Self::History,
            _ => Self::Message,
        }
    }
}

impl Refusal {
    /// The field that says so.
    pub fn field(self) -> Vec<u8> {
        [first(Kind::Refusal), vec![digits::to_byte(self as u8)]].concat()
    }

    /// Reads it; none if the field is something else.
    pub fn read(field: &[u8]) -> Option<Self> {
        let (Kind::Refusal, [reason]) = open(field).ok()? else {
            return None;
        };
        match digits::from_byte(*reason).ok()? {
            0 => Some(Self::Format),
            1 => Some(Self::History),
            _ => Some(Self::Message),
        }
    }
}

/// The field that offers packed headers, or accepts the offer.
pub fn hello() -> Vec<u8> {
    first(Kind::Hello)
}

/// Whether a field is an offer of, or a consent to, the format spoken here.
pub fn is_hello(field: &[u8]) -> bool {
    matches!(open(field), Ok((Kind::Hello, _)))
}

/// The digit that begins a message.
pub(crate) fn first(kind: Kind) -> Vec<u8> {
    vec![digits::to_byte(kind as u8 + KINDS * FORMAT)]
}

/// The kind of a message and what follows its first digit.
pub(crate) fn open(field: &[u8]) -> Result<(Kind, &[u8]), DecodeError> {
    let (head, rest) = field.split_first().ok_or(DecodeError::Empty)?;
    let head = digits::from_byte(*head)?;
    let (kind, format) = (head % KINDS, head / KINDS);
    if format != FORMAT {
        return Err(DecodeError::UnknownFormat(format));
    }
    let kind = match kind {
        0 => Kind::Opening,
        1 => Kind::Following,
        2 => Kind::Answer,
        3 => Kind::Refusal,
        4 => Kind::Hello,
        other => return Err(DecodeError::UnexpectedKind(other)),
    };
    Ok((kind, rest))
}

/// Whose exchange an opening request belongs to, and which it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OpeningHead {
    pub(crate) session: u32,
    pub(crate) client: u64,
    /// How often this client number has been given to somebody else, modulo [`EPOCHS`].
    pub(crate) epoch: u64,
    pub(crate) exchange: u64,
}

/// Epochs count from 0 to one less.
pub(crate) const EPOCHS: u64 = 16;

impl OpeningHead {
    pub(crate) fn code<C: Coder + ?Sized>(self, coder: &mut C) -> Self {
        Self {
            session: u32::try_from(coder.raw(32, u64::from(self.session))).unwrap_or(0),
            client: number(coder, salt::MESSAGE, self.client),
            epoch: coder.raw(EPOCHS.ilog2(), self.epoch),
            exchange: number(coder, salt::MESSAGE + 1, self.exchange),
        }
    }
}

/// The same for a request that follows others, and the view it refers to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FollowingHead {
    pub(crate) client: u64,
    /// The number of the view, modulo [`VIEWS`].
    pub(crate) view: u64,
    /// The exchanges that made the latest views out of the one before them, oldest first: each as the difference from the
    /// one before it, less one.
    pub(crate) appended: Vec<i64>,
    /// The number of this exchange as the difference from the view's newest, less one.
    pub(crate) exchange: u64,
}

/// View numbers travel modulo this.
pub(crate) const VIEWS: u64 = 64;
/// So many exchanges can be appended by one message.
pub(crate) const APPENDED: usize = 6;

impl FollowingHead {
    pub(crate) fn code<C: Coder + ?Sized>(&self, coder: &mut C) -> Result<Self, DecodeError> {
        let client = number(coder, salt::MESSAGE, self.client);
        let view = coder.raw(VIEWS.ilog2(), self.view);
        let count = number(coder, salt::MESSAGE + 2, u64::try_from(self.appended.len()).unwrap_or(0));
        let count = usize::try_from(count).ok().filter(|count| *count <= APPENDED);
        let count = count.ok_or(DecodeError::Malformed("appends too many exchanges at once"))?;
        let appended = (0..count)
            .map(|at| signed(coder, salt::MESSAGE + 3, self.appended.get(at).copied().unwrap_or(0)))
            .collect();
        let exchange = number(coder, salt::MESSAGE + 4, self.exchange);
        Ok(Self { client, view, appended, exchange })
    }
}

/// Binary digits of the check at the end.
pub(crate) const CHECK_BITS: u32 = 16;

/// What the check of a message begins with: everything both ends must agree on besides the block.
pub(crate) fn seed(session: u32, client: u64, epoch: u64, exchange: u64, view: u64) -> u32 {
    [client, epoch, exchange, view]
        .into_iter()
        .fold(session, |sum, number| mix(sum, u32::try_from(number & 0xffff_ffff).unwrap_or(0)))
}
