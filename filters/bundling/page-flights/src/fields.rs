//! Header lists. Names are in lower case, as in HTTP/2 and in Envoy; values are bytes.

use http_semantics::{FieldList, Fields};

/// Returns the list as [`Fields`] reads it.
pub(crate) fn borrowed(list: &FieldList) -> Vec<(&[u8], &[u8])> {
    list.iter().map(|(name, value)| (&**name, &**value)).collect()
}

/// Returns the media type in lower case, without parameters.
pub(crate) fn media_type(fields: &Fields<'_>) -> Vec<u8> {
    head(fields.get("content-type").unwrap_or_default()).to_ascii_lowercase()
}

/// Returns the part of `item` before its parameters.
pub(crate) fn head(item: &[u8]) -> &[u8] {
    let end = item.iter().position(|byte| matches!(byte, b';' | b'=')).unwrap_or(item.len());
    item.get(..end).unwrap_or(item).trim_ascii()
}
