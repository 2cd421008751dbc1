//! Requests of our own: sent through a cluster of the proxy, answered in a later callback.
//!
//! The answer comes to `on_http_call_response` of the context in whose callback the request was sent. It is read whole
//! into the proxy's memory first, so who asks bounds what comes. With its context, a request of a stream ends: what
//! shall outlive the stream is sent from the root context, in its `on_tick`.
//!
//! The one host call that goes through the SDK: its dispatcher panics at an answer to a request it has not sent itself.
//! Its own panic needs a status that this call does not have (`proxy_http_call` answers ok, bad argument or internal
//! failure, also where it is not permitted).

use std::time::Duration;

use crate::body::{self, Buffer};
use crate::error::HostError;
use crate::headers::{self, Map, Pairs};

/// Which answer belongs to which request; never the same twice in a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(u32);

impl Token {
    /// As the callback names it.
    pub fn of_callback(token_id: u32) -> Self {
        Self(token_id)
    }

    /// For tables of what is under way.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// Sends a request without a body to `cluster`. `fields` bear `:method`, `:scheme`, `:authority` and `:path`. What is not
/// answered after `timeout`, to the last byte, has failed.
///
/// # Errors
/// [`HostError::BadArgument`] for a cluster that is not there or a pseudo-header that is missing;
/// [`HostError::ForbiddenByte`] for a value with a control byte; [`HostError::Internal`] where it could not be sent or is
/// not permitted.
pub fn send(cluster: &str, fields: &[(&str, impl AsRef<str>)], timeout: Duration) -> Result<Token, HostError> {
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_ref())).collect();
    fields.iter().try_for_each(|(_, value)| headers::check_value(value.as_bytes()))?;
    sdk::dispatch(cluster, fields, timeout).map(Token)
}

/// How a request of ours ended.
#[derive(Debug)]
pub enum Ending {
    /// With an answer, of whatever status.
    Answered {
        /// Its headers, `:status` among them.
        headers: Pairs,
        /// The size of its body, for [`read_body`].
        body_bytes: usize,
    },
    /// With none: timed out, reset, or too large for the proxy to hold.
    Failed,
}

/// What the callback was called for, by the numbers it is given.
pub fn ending(header_count: usize, body_bytes: usize) -> Result<Ending, HostError> {
    if header_count == 0 {
        return Ok(Ending::Failed);
    }
    headers::list(Map::CalloutResponse).map(|headers| Ending::Answered { headers, body_bytes })
}

/// The answer's body, in the callback.
pub fn read_body(body_bytes: usize) -> Result<Vec<u8>, HostError> {
    body::read(Buffer::CalloutResponseBody, body_bytes)
}

#[cfg(target_arch = "wasm32")]
mod sdk {
    use std::time::Duration;

    use proxy_wasm::hostcalls;
    use proxy_wasm::types::Status;

    use crate::error::HostError;

    pub(super) fn dispatch(cluster: &str, fields: Vec<(&str, &str)>, timeout: Duration) -> Result<u32, HostError> {
        hostcalls::dispatch_http_call(cluster, fields, None, Vec::new(), timeout).map_err(|status| match status {
            Status::BadArgument => HostError::BadArgument,
            other => HostError::Internal(other as u32),
        })
    }
}

/// Outside a proxy, in native tests, every call is unimplemented.
#[cfg(not(target_arch = "wasm32"))]
mod sdk {
    use std::time::Duration;

    use crate::error::HostError;

    pub(super) fn dispatch(_: &str, _: Vec<(&str, &str)>, _: Duration) -> Result<u32, HostError> {
        Err(HostError::Unimplemented)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_byte_never_reaches_the_host() {
        let timeout = Duration::from_secs(1);
        assert_eq!(send("c", &[(":path", "/a\r\nb: c")], timeout), Err(HostError::ForbiddenByte));
        assert_eq!(send("c", &[(":path", "/a")], timeout), Err(HostError::Unimplemented));
    }

    #[test]
    fn an_answer_without_headers_is_a_failure() {
        assert!(matches!(ending(0, 0), Ok(Ending::Failed)));
        assert!(matches!(ending(3, 0), Err(HostError::Unimplemented)));
    }
}
