//! What the two ends tell the glue to do with a message's headers, and the fields they use on the pipe.

/// Names and values, in order.
pub type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// The field that carries packed headers, offers and refusals. A client's field of that name never reaches the pipe.
pub const FIELD: &str = "x-longhaul-headers";

/// The field that makes the remote's proxy send a request again (`retriable_headers` of its route).
pub const RETRY: &str = "x-longhaul-retry";

/// What stands in the place of a packed request's authority. It is no name that any resolver could know, so a ground that
/// does not speak this asks nobody.
pub(crate) const AUTHORITY: &[u8] = b"-";

/// What stands in the place of a packed response's date, because Envoy would add one.
pub(crate) const DATE: &[u8] = b"-";

/// What the glue does with the headers it has passed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Nothing.
    Keep,
    /// Puts these in their place.
    Replace(Fields),
    /// Ends the stream with this response.
    Reply {
        /// Its status.
        status: u16,
        /// Its fields.
        fields: Fields,
        /// A line for whoever looks at the pipe.
        body: String,
    },
}

/// The first value of a name.
pub(crate) fn find<'a>(headers: &[(&'a [u8], &'a [u8])], name: &[u8]) -> Option<&'a [u8]> {
    headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// Whether a field is one of ours. Origins and clients that send one have it removed: it would make the other end unpack
/// it, or the proxy send a request again.
pub(crate) fn is_ours(name: &[u8]) -> bool {
    name == FIELD.as_bytes() || name == RETRY.as_bytes()
}

/// All headers but ours.
pub(crate) fn without_ours(headers: &[(&[u8], &[u8])]) -> Fields {
    let others = headers.iter().filter(|(name, _)| !is_ours(name));
    others.map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
}

/// Leaves the headers as they are, but for ours.
pub(crate) fn keep_others(headers: &[(&[u8], &[u8])]) -> Edit {
    if headers.iter().any(|(name, _)| is_ours(name)) { Edit::Replace(without_ours(headers)) } else { Edit::Keep }
}

/// Whether unpacked headers are what HTTP allows and what the proxy cannot do without. Others would make it close the
/// connection, with all that travels on it.
pub(crate) fn is_http(fields: &Fields, needed: &[&[u8]]) -> bool {
    let tchar = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let name = |name: &[u8]| {
        let plain = name.strip_prefix(b":").unwrap_or(name);
        !plain.is_empty() && plain.iter().all(tchar)
    };
    let value = |value: &[u8]| value.iter().all(|byte| (*byte >= b' ' && *byte != 0x7f) || *byte == b'\t');
    needed.iter().all(|needed| fields.iter().any(|(name, _)| name == needed))
        && fields.iter().all(|(field, text)| name(field) && value(text))
}
