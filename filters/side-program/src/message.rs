//! Fields of messages.

use http_semantics::Fields;
use hyper::Method;
use hyper::header::{self, HeaderMap, HeaderName};

/// Removes the fields of one connection (RFC 9110 section 7.6.1). Envoy has removed those that `Connection` names.
pub fn without_hop_by_hop(headers: &mut HeaderMap) {
    for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::TE, header::UPGRADE] {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection"] {
        headers.remove(HeaderName::from_static(name));
    }
}

/// Returns the fields of a request, or of a response if it has a `status`, with the pseudo-header field in front.
pub fn fields<'a>(method: &'a Method, status: Option<&'a str>, headers: &'a HeaderMap) -> Fields<'a> {
    let first = match status {
        Some(status) => (&b":status"[..], status.as_bytes()),
        None => (&b":method"[..], method.as_str().as_bytes()),
    };
    [first]
        .into_iter()
        .chain(headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes())))
        .collect()
}
