//! The treatments that the two ends return for a message's headers, and Longhaul's own fields on the pipe.

use http_semantics::{FieldList, Reply};

/// The field that carries compressed headers, offers and refusals. A client's field of that name never reaches the
/// pipe.
pub const FIELD: &str = "x-longhaul-headers";

/// The field that makes the remote's proxy retry a request (`retriable_headers` of its route).
pub const RETRY: &str = "x-longhaul-retry";

/// The authority of a compressed request. No resolver can know this name, so a ground without the filter forwards the
/// request to no origin.
pub(crate) const AUTHORITY: &[u8] = b"-";

/// The date of a compressed response. Without it Envoy would add one.
pub(crate) const DATE: &[u8] = b"-";

/// The fate of the headers that the caller passed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Treatment {
    /// Leaves them unchanged.
    Keep,
    /// Replaces them with these fields.
    Replace(FieldList),
    /// Ends the stream with this response.
    Reply(Reply),
}

/// Returns the first value of a name.
pub(crate) fn find<'a>(headers: &[(&'a [u8], &'a [u8])], name: &[u8]) -> Option<&'a [u8]> {
    headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// Returns true for Longhaul's own fields. The filter removes them from messages of origins and clients. Otherwise they
/// would make the other end decompress them, or make the proxy retry a request.
pub(crate) fn is_ours(name: &[u8]) -> bool {
    name == FIELD.as_bytes() || name == RETRY.as_bytes()
}

/// Returns all headers but Longhaul's own fields.
pub(crate) fn without_ours(headers: &[(&[u8], &[u8])]) -> FieldList {
    let others = headers.iter().filter(|(name, _)| !is_ours(name));
    others.map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
}

/// Leaves the headers unchanged but for Longhaul's own fields.
pub(crate) fn keep_others(headers: &[(&[u8], &[u8])]) -> Treatment {
    if headers.iter().any(|(name, _)| is_ours(name)) {
        Treatment::Replace(without_ours(headers))
    } else {
        Treatment::Keep
    }
}

/// Returns true if decompressed headers are valid in HTTP and include all fields that the proxy needs. Invalid ones
/// would make the proxy close the connection with all its streams.
pub(crate) fn is_http(fields: &FieldList, needed: &[&[u8]]) -> bool {
    let tchar = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let name = |name: &[u8]| {
        let plain = name.strip_prefix(b":").unwrap_or(name);
        !plain.is_empty() && plain.iter().all(tchar)
    };
    let value = |value: &[u8]| value.iter().all(|byte| (*byte >= b' ' && *byte != 0x7f) || *byte == b'\t');
    needed.iter().all(|needed| fields.iter().any(|(name, _)| name == needed))
        && fields.iter().all(|(field, text)| name(field) && value(text))
}
