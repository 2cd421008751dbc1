//! The part that both ends' protocols share: compressing and decompressing one block within a view.

use std::rc::Rc;

use crate::block::Block;
use crate::coder::{Coder, Decoder, Encoder};
use crate::dictionary::Dictionary;
use crate::digits;
use crate::error::{DecodeError, Unpackable};
use crate::exchange::{Side, View};
use crate::limits;
use crate::message::{self, CHECK_BITS, Kind};
use crate::scene::{Scene, Setting};
use crate::walk;

/// Appends `block` and its check to a message.
pub(crate) fn pack_block(
    mut coder: Encoder<'_>,
    field: Vec<u8>,
    dictionary: &Dictionary,
    setting: Setting<'_>,
    block: &Block,
    seed: u32,
) -> Result<Vec<u8>, Unpackable> {
    let mut scene = Scene::new(setting, dictionary);
    walk::code(&mut coder, &mut scene, block).map_err(|_| Unpackable::TooLarge)?;
    coder.raw(CHECK_BITS, u64::from(block.check(seed) & CHECK_MASK));
    let field = coder.finish(field);
    match field.len() {
        length if length > limits::MESSAGE_BYTES => Err(Unpackable::TooLarge),
        // The name and the value of a field each take at least one byte of length in any encoding.
        length if length >= block.bytes() + 2 * block.len() => Err(Unpackable::NoGain),
        _ => Ok(field),
    }
}

/// Reads a block that [`pack_block`] wrote.
pub(crate) fn unpack_block(
    mut coder: Decoder<'_>,
    dictionary: &Dictionary,
    setting: Setting<'_>,
    seed: u32,
) -> Result<Block, DecodeError> {
    let mut scene = Scene::new(setting, dictionary);
    let block = walk::code(&mut coder, &mut scene, &Block::default())?;
    let check = coder.raw(CHECK_BITS, 0);
    if check != u64::from(block.check(seed) & CHECK_MASK) || coder.spent() {
        return Err(DecodeError::CheckFailed);
    }
    if !block.crumbs_join() {
        return Err(DecodeError::Malformed("a cookie crumb without its cookie"));
    }
    Ok(block)
}

/// Reads the response to `request`, which referred to `view`.
pub(crate) fn unpack_answer(
    dictionary: &Dictionary,
    view: &View,
    request: &Block,
    seed: u32,
    field: &[u8],
) -> Result<Block, DecodeError> {
    let (kind, _) = message::open(field)?;
    if kind != Kind::Answer {
        return Err(DecodeError::UnexpectedKind(kind as u8));
    }
    let digits = digits_of(field)?;
    let coder = Decoder::new(dictionary, digits.get(1..).unwrap_or_default());
    let setting = Setting { side: Side::Response, view, request: Some(request) };
    unpack_block(coder, dictionary, setting, seed)
}

const CHECK_MASK: u32 = (1 << CHECK_BITS) - 1;

/// Returns the digits of a message.
pub(crate) fn digits_of(field: &[u8]) -> Result<Vec<u8>, DecodeError> {
    if field.len() > limits::MESSAGE_BYTES {
        return Err(DecodeError::TooLarge);
    }
    field.iter().map(|byte| digits::from_byte(*byte)).collect()
}

/// Returns a view without exchanges.
pub(crate) fn empty_view() -> Rc<View> {
    Rc::new(View::default())
}
