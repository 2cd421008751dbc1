//! Requests that the filter itself sends through a cluster of the proxy. The response comes in a later callback.
//!
//! The host tells the context whose callback sent the request. The proxy first reads the
//! whole response into its memory, so the sender must bound its size. A request ends with its context. Send a request
//! that must outlive a stream from the root context, in its `on_tick`.

use std::time::Duration;

use crate::body::{self, Buffer};
use crate::calls;
use crate::error::HostError;
use crate::headers::{self, Map, Pairs};

/// Names a request. The host never uses a number twice in a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(u32);

impl Token {
    /// Returns the token of a callback.
    pub fn of_callback(token_id: u32) -> Self {
        Self(token_id)
    }

    /// Returns the number as a key for tables of open requests.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// Sends a request without a body to `cluster`. `fields` must hold `:method`, `:scheme`, `:authority` and `:path`. The
/// request fails if its last byte has not arrived after `timeout`.
///
/// # Errors
/// [`HostError::BadArgument`] for an unknown cluster or a missing pseudo-header; [`HostError::ForbiddenByte`] for a
/// value with a control byte; [`HostError::Internal`] if the host could not send it or forbids it.
pub fn send(cluster: &str, fields: &[(&str, impl AsRef<str>)], timeout: Duration) -> Result<Token, HostError> {
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_ref())).collect();
    fields.iter().try_for_each(|(_, value)| headers::check_value(value.as_bytes()))?;
    calls::http_call(cluster, &fields, timeout).map(Token)
}

/// The end of a request that the filter sent.
#[derive(Debug)]
pub enum Ending {
    /// A response arrived, of any status.
    Answered {
        /// Its headers, `:status` among them.
        headers: Pairs,
        /// The size of its body, for [`read_body`].
        body_bytes: usize,
    },
    /// No response: the request timed out, was reset, or the response was too large for the proxy to hold.
    Failed,
}

/// Tells the end of a request from the numbers that the callback gets.
pub fn ending(header_count: usize, body_bytes: usize) -> Result<Ending, HostError> {
    if header_count == 0 {
        return Ok(Ending::Failed);
    }
    headers::list(Map::CalloutResponse).map(|headers| Ending::Answered { headers, body_bytes })
}

/// Returns the body of the response, in its callback.
pub fn read_body(body_bytes: usize) -> Result<Vec<u8>, HostError> {
    body::read(Buffer::CalloutResponseBody, body_bytes)
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
