//! Messages: the parts before and after a block. They tell the other end the kind of the message and the exchanges that
//! it refers to.
//!
//! The first digit holds the kind and the format. A format stands for a version of the wire format together with a
//! dictionary. FORMAT.md describes every byte.

use crate::coder::{Coder, number, salt, signed};
use crate::digits;
use crate::error::DecodeError;
use crate::hash::mix;

/// The format that this crate writes: version 1, dictionary 1.
pub const FORMAT: u8 = 1;
/// Number of kinds. The first digit of a message is `kind + KINDS * format`.
const KINDS: u8 = 8;

/// Kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request that refers only to the dictionary.
    Opening = 0,
    /// A request that refers to a view.
    Following = 1,
    /// A response.
    Answer = 2,
    /// The ground could not decompress the request.
    Refusal = 3,
    /// The sender supports this format.
    Hello = 4,
}

/// Why the ground refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The ground does not support this format.
    Format,
    /// The ground does not hold the exchanges that the request refers to. The same request without references will
    /// succeed.
    History,
    /// The field is not a valid message, or it exceeds the limits.
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
    /// Returns the field that carries this refusal.
    pub fn field(self) -> Vec<u8> {
        [first(Kind::Refusal), vec![digits::to_byte(self as u8)]].concat()
    }

    /// Reads a refusal. Returns `None` if the field is another message.
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

/// Returns the field that offers compressed headers or accepts the offer.
pub fn hello() -> Vec<u8> {
    first(Kind::Hello)
}

/// Returns true if a field offers or accepts the format of this crate.
pub fn is_hello(field: &[u8]) -> bool {
    matches!(open(field), Ok((Kind::Hello, _)))
}

/// Returns the digit that begins a message.
pub(crate) fn first(kind: Kind) -> Vec<u8> {
    vec![digits::to_byte(kind as u8 + KINDS * FORMAT)]
}

/// Returns the kind of a message and the digits after the first one.
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

/// Head of an opening request: its client and the number of its exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OpeningHead {
    pub(crate) session: u32,
    pub(crate) client: u64,
    /// Number of times that this client number has passed to another client, modulo [`EPOCHS`].
    pub(crate) epoch: u64,
    pub(crate) exchange: u64,
}

/// Epochs count from 0 to `EPOCHS - 1`.
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

/// Head of a request that refers to earlier exchanges, with the view that it refers to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FollowingHead {
    pub(crate) client: u64,
    /// The number of the view, modulo [`VIEWS`].
    pub(crate) view: u64,
    /// The exchanges appended to make the latest views, oldest first. Each is its difference from the exchange before
    /// it, minus one.
    pub(crate) appended: Vec<i64>,
    /// The number of this exchange: its difference from the newest one in the view, minus one.
    pub(crate) exchange: u64,
}

/// Messages carry view numbers modulo this.
pub(crate) const VIEWS: u64 = 64;
/// One message can append at most this many exchanges.
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

/// Returns the seed of a message's check: the values besides the block on which both ends must agree.
pub(crate) fn seed(session: u32, client: u64, epoch: u64, exchange: u64, view: u64) -> u32 {
    [client, epoch, exchange, view]
        .into_iter()
        .fold(session, |sum, number| mix(sum, u32::try_from(number & 0xffff_ffff).unwrap_or(0)))
}
