//! Local responses, sent instead of the origin's.

use http_semantics::Reply;

use crate::error::HostError;
use crate::ffi;
use crate::headers;

/// Ends the stream with a local response. This is possible until response headers have been sent. The host sends it
/// after the callback has returned, without fields whose names are not ASCII. Access logs show `details` (`%RESPONSE_CODE_DETAILS%`).
pub fn send(reply: &Reply, details: &str) -> Result<(), HostError> {
    let named = reply.fields.iter().filter(|(name, _)| name.is_ascii());
    let fields: Vec<(&[u8], &[u8])> = named.map(|(name, value)| (&**name, &**value)).collect();
    ffi::send_local_response(u32::from(reply.status), details, &headers::serialize(&fields), &reply.body)
}
