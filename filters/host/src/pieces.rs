//! Bodies that are read, or rewritten in pieces.

use crate::error::HostError;

/// A change of a piece of a body. It appends to its last argument what replaces the piece. It hears whether the piece is the last
/// one, and returns false if nothing changes.
pub type Change<'c> = dyn FnMut(&[u8], bool, &mut Vec<u8>) -> bool + 'c;

/// Returns the `size` bytes that `read` returns. A body without bytes may be none for the host.
pub(crate) fn whole(size: usize, read: impl FnOnce() -> Result<Vec<u8>, HostError>) -> Result<Vec<u8>, HostError> {
    if size == 0 {
        return Ok(Vec::new());
    }
    match read() {
        Err(HostError::NotFound | HostError::Empty) => Ok(Vec::new()),
        outcome => outcome,
    }
}

/// Rewrites a body in one piece.
pub(crate) fn rewrite_whole(
    bytes: &[u8],
    out: &mut Vec<u8>,
    change: &mut Change<'_>,
    replace: impl FnOnce(&[u8]) -> Result<(), HostError>,
) -> Result<(), HostError> {
    if change(bytes, true, out) { replace(out) } else { Ok(()) }
}
