//! Local responses, sent instead of the origin's.

use crate::error::HostError;
use crate::ffi;
use crate::headers;

/// Ends the stream with a local response. This is possible until response headers have been sent. The host sends it
/// after the callback has returned. Access logs show `details` (`%RESPONSE_CODE_DETAILS%`).
pub fn send(status: u16, details: &str, fields: &[(&str, &[u8])], body: &[u8]) -> Result<(), HostError> {
    ffi::send_local_response(u32::from(status), details, &headers::serialize(fields), body)
}
