//! A response on its way, piece by piece.

use crate::fields::Field;

/// A part of a response.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Headers(Vec<Field>, bool),
    Body(Vec<u8>, bool),
    Reset,
}
