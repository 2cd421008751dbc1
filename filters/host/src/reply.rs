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

/// Ends the stream with a response that is complete. It passes the filters as a response of the origin does, and the host sends
/// as much of its body as the client takes. `fields` begin with `:status`. Only native programs have this call.
#[cfg(not(target_arch = "wasm32"))]
pub fn respond(fields: &[(&[u8], &[u8])], body: Vec<crate::Slice>) -> Result<(), HostError> {
    fields.iter().try_for_each(|(_, value)| crate::headers::check_value(value))?;
    calls::respond(&Pairs::of(fields), body)
}
