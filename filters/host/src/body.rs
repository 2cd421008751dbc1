//! The part of a body that the proxy shows in a body callback. This crate does not interpret its bytes.

use crate::calls;
use crate::error::HostError;
use crate::kinds::Half;
use crate::pieces::whole;

pub use crate::kinds::Buffer;
pub use crate::pieces::Change;

/// Returns the first `size` bytes of `buffer`.
pub fn read(buffer: Buffer, size: usize) -> Result<Vec<u8>, HostError> {
    whole(size, || calls::get_buffer(buffer, 0, size))
}

/// Replaces the `size` bytes that the callback announced by `bytes`. With `size` 0, as in the empty last callback of a
/// stream, `bytes` are appended. Both may be empty.
pub fn replace(buffer: Buffer, size: usize, bytes: &[u8]) -> Result<(), HostError> {
    calls::set_buffer(buffer, 0, size, bytes)
}

/// Rewrites the `size` bytes that the callback announced, piece by piece. With `size` 0 there is one piece, which is empty.
/// `out` is memory for the output, and empty afterwards.
///
/// # Errors
/// The host does not read or replace the body.
pub fn rewrite(buffer: Buffer, size: usize, out: &mut Vec<u8>, change: &mut Change<'_>) -> Result<(), HostError> {
    out.clear();
    let outcome = calls::rewrite_buffer(buffer, size, out, change);
    out.clear();
    outcome
}

/// Returns true if the body's callback may return [`crate::stream::Action::Pause`]. It may not while a filter further on holds bytes of
/// this body: native filters share one buffer.
pub fn may_hold() -> bool {
    calls::may_hold_body()
}

/// Marks the response as incomplete: the proxy resets the connection, or in HTTP/2 the stream. It first sends the bytes
/// that earlier callbacks released. It drops the bytes that this callback holds.
pub fn break_off() -> Result<(), HostError> {
    calls::close_stream(Half::Response)
}
