//! The part of a body that the proxy shows in a body callback. This crate does not interpret its bytes.

use crate::calls;
use crate::error::HostError;
use crate::kinds::Half;

pub use crate::kinds::Buffer;

/// Returns the first `size` bytes of `buffer`.
pub fn read(buffer: Buffer, size: usize) -> Result<Vec<u8>, HostError> {
    if size == 0 {
        return Ok(Vec::new());
    }
    match calls::get_buffer(buffer, 0, size) {
        Err(HostError::NotFound | HostError::Empty) => Ok(Vec::new()),
        outcome => outcome,
    }
}

/// Replaces the `size` bytes that the callback announced by `bytes`. With `size` 0, as in the empty last callback of a
/// stream, `bytes` are appended. Both may be empty.
pub fn replace(buffer: Buffer, size: usize, bytes: &[u8]) -> Result<(), HostError> {
    calls::set_buffer(buffer, 0, size, bytes)
}

/// Rewrites the `size` bytes that the callback announced, piece by piece: `change` appends to its last argument what replaces a
/// piece. It hears whether the piece is the last one, and returns false if nothing changes. With `size` 0 there is one piece,
/// which is empty. `out` is memory for the output, and empty afterwards.
///
/// # Errors
/// The host does not read or replace the body.
pub fn rewrite(
    buffer: Buffer,
    size: usize,
    out: &mut Vec<u8>,
    change: &mut dyn FnMut(&[u8], bool, &mut Vec<u8>) -> bool,
) -> Result<(), HostError> {
    out.clear();
    let outcome = calls::rewrite_buffer(buffer, size, out, change);
    out.clear();
    outcome
}

/// The same, of a body in one piece.
pub(crate) fn rewrite_whole(
    buffer: Buffer,
    size: usize,
    out: &mut Vec<u8>,
    change: &mut dyn FnMut(&[u8], bool, &mut Vec<u8>) -> bool,
) -> Result<(), HostError> {
    let bytes = read(buffer, size)?;
    if change(&bytes, true, out) { replace(buffer, size, out) } else { Ok(()) }
}

/// Marks the response as incomplete: the proxy resets the connection, or in HTTP/2 the stream. It first sends the bytes
/// that earlier callbacks released. It drops the bytes that this callback holds.
pub fn break_off() -> Result<(), HostError> {
    calls::close_stream(Half::Response)
}
