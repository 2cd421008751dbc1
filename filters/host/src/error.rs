//! The errors of host calls.

use std::fmt;

/// A host call that failed (proxy-wasm ABI 0.2.1, `proxy_status_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostError {
    /// The requested object does not exist.
    NotFound,
    /// The host rejects an argument, often because of the phase the stream is in.
    BadArgument,
    /// The host could not serialise or parse.
    Serialization,
    /// The value is empty or missing.
    Empty,
    /// The value changed in the meantime (compare-and-swap failed).
    CasMismatch,
    /// The host does not have this call, or `capability_restriction_config` forbids it.
    Unimplemented,
    /// Any other failure.
    Internal(u32),
    /// This crate refused the call: a header value with a control byte would make the proxy close the connection.
    ForbiddenByte,
}

impl fmt::Display for HostError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => formatter.write_str("not found"),
            Self::BadArgument => formatter.write_str("bad argument"),
            Self::Serialization => formatter.write_str("serialization failure"),
            Self::Empty => formatter.write_str("empty"),
            Self::CasMismatch => formatter.write_str("changed by another worker"),
            Self::Unimplemented => formatter.write_str("not implemented or not permitted"),
            Self::Internal(status) => write!(formatter, "status {status}"),
            Self::ForbiddenByte => formatter.write_str("control byte in a header value"),
        }
    }
}

impl std::error::Error for HostError {}
