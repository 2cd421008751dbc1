//! Acting on another stream than the one whose callback runs: a stream is held by answering its headers callback with
//! `Action::Pause`, and let go later from the callback of another stream, of a callout or of a tick.
//!
//! **Answer another stream only from a callback of the root context** (a tick, an answer to a request of ours): Envoy 1.40
//! stops whichever stream's callback an answer is sent in, whomever it is for.
//!
//! The effective context is set for the length of one call and put back by [`on_behalf_of`], so that what follows in the
//! callback means its own stream again. A context that is gone answers with an error and nothing happens.

use crate::error::HostError;
use crate::ffi;

/// Does `act` as if the callback of context `id` ran, then goes back to context `own`.
pub fn on_behalf_of<T>(id: u32, own: u32, act: impl FnOnce() -> Result<T, HostError>) -> Result<T, HostError> {
    ffi::set_effective_context(id)?;
    let outcome = act();
    ffi::set_effective_context(own)?;
    outcome
}

/// Lets a held request go on as it is.
pub fn continue_request() -> Result<(), HostError> {
    const HTTP_REQUEST: u32 = 0;
    ffi::continue_stream(HTTP_REQUEST)
}

/// Lets what is held of a response go on as it is.
pub fn continue_response() -> Result<(), HostError> {
    const HTTP_RESPONSE: u32 = 1;
    ffi::continue_stream(HTTP_RESPONSE)
}
