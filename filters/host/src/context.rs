//! Acts on another stream than the one whose callback runs. A filter holds a stream by returning `Action::Pause` from
//! its headers callback. The callback of another stream, of a callout or of a tick releases it later.
//!
//! **Send a local response to another stream only from a callback of the root context** (a tick, or the response to a
//! callout). Envoy 1.40 stops the stream whose callback sends a local response, even when the response is for another
//! stream.
//!
//! [`on_behalf_of`] sets the effective context for the length of one call, then restores it. Later calls in the
//! callback mean its own stream again. A call for a context that no longer exists returns an error and does nothing.

use crate::calls;
use crate::error::HostError;
use crate::kinds::Half;

/// Runs `act` as if the callback of context `id` ran, then returns to context `own`.
pub fn on_behalf_of<T>(id: u32, own: u32, act: impl FnOnce() -> Result<T, HostError>) -> Result<T, HostError> {
    calls::set_effective_context(id)?;
    let outcome = act();
    calls::set_effective_context(own)?;
    outcome
}

/// Releases a held request as it is.
pub fn continue_request() -> Result<(), HostError> {
    calls::continue_stream(Half::Request)
}

/// Releases the held part of a response as it is.
pub fn continue_response() -> Result<(), HostError> {
    calls::continue_stream(Half::Response)
}
