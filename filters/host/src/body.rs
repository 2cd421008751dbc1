//! The part of a body that the proxy shows in a body callback. This crate does not interpret its bytes.

use crate::error::HostError;
use crate::ffi;

/// Names a buffer of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Buffer {
    /// Body of the request, in its body callback.
    RequestBody = 0,
    /// Body of the response, in its body callback.
    ResponseBody = 1,
    /// Body of the response to a [`callout`](crate::callout), in its callback.
    CalloutResponseBody = 4,
    /// The plugin's configuration, in the configure callback.
    PluginConfiguration = 7,
}

/// Returns the first `size` bytes of `buffer`.
pub fn read(buffer: Buffer, size: usize) -> Result<Vec<u8>, HostError> {
    if size == 0 {
        return Ok(Vec::new());
    }
    match ffi::get_buffer(buffer as u32, 0, size) {
        Err(HostError::NotFound | HostError::Empty) => Ok(Vec::new()),
        outcome => outcome,
    }
}

/// Replaces the `size` bytes that the callback announced by `bytes`. With `size` 0, as in the empty last callback of a
/// stream, `bytes` are appended. Both may be empty.
pub fn replace(buffer: Buffer, size: usize, bytes: &[u8]) -> Result<(), HostError> {
    ffi::set_buffer(buffer as u32, 0, size, bytes)
}

/// Marks the response as incomplete: the proxy resets the connection, or in HTTP/2 the stream. It first sends the bytes
/// that earlier callbacks released. It drops the bytes that this callback holds.
pub fn break_off() -> Result<(), HostError> {
    const HTTP_RESPONSE: u32 = 1;
    ffi::close_stream(HTTP_RESPONSE)
}
