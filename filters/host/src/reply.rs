//! Local responses, sent instead of the origin's.

use http_semantics::Reply;

use crate::calls;
use crate::error::HostError;
use crate::pairs::Pairs;

/// Ends the stream with a local response. This is possible until response headers have been sent. The host sends it
/// after the callback has returned, without fields whose names are not ASCII. Access logs show `details` (`%RESPONSE_CODE_DETAILS%`).
pub fn send(reply: &Reply, details: &str) -> Result<(), HostError> {
    let named = reply.fields.iter().filter(|(name, _)| name.is_ascii());
    let fields: Vec<(&[u8], &[u8])> = named.map(|(name, value)| (&**name, &**value)).collect();
    calls::send_local_response(reply.status, details, &Pairs::of(&fields), &reply.body)
}
