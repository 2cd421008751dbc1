//! Answering instead of the origin.

use crate::error::HostError;
use crate::ffi;
use crate::headers;

/// Ends the stream with a response of ours. Possible until response headers have been sent; the host sends it after
/// the callback has returned. `details` shows up in access logs (`%RESPONSE_CODE_DETAILS%`).
pub fn send(status: u16, details: &str, fields: &[(&str, &[u8])], body: &[u8]) -> Result<(), HostError> {
    ffi::send_local_response(u32::from(status), details, &headers::serialize(fields), body)
}
