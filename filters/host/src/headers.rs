//! The header maps. Values are bytes: HTTP allows nearly any octet, and decoding them as UTF-8 has caused outages.

use http_semantics::Edit;

use crate::calls;
use crate::error::HostError;

pub use crate::kinds::Map;
pub use crate::pairs::Pairs;

/// Returns the first value of `name` (lower case), or none.
pub fn get(map: Map, name: &str) -> Result<Option<Vec<u8>>, HostError> {
    match calls::get_header(map, name) {
        Ok(value) => Ok(Some(value)),
        Err(HostError::NotFound | HostError::Empty) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns every header, in order, with one host call and one copy.
pub fn list(map: Map) -> Result<Pairs, HostError> {
    calls::get_header_pairs(map)
}

/// Sets `name` to the single value `value`, and removes its earlier values.
pub fn set(map: Map, name: &str, value: &[u8]) -> Result<(), HostError> {
    check_value(value)?;
    calls::replace_header(map, name, value)
}

/// Adds one value of `name` to those that exist.
pub fn add(map: Map, name: &str, value: &[u8]) -> Result<(), HostError> {
    check_value(value)?;
    calls::add_header(map, name, value)
}

/// Removes every value of `name`, and succeeds if there is none.
pub fn remove(map: Map, name: &str) -> Result<(), HostError> {
    match calls::remove_header(map, name) {
        Err(HostError::NotFound) => Ok(()),
        outcome => outcome,
    }
}

/// Makes these edits, in order.
pub fn apply(map: Map, edits: &[Edit]) -> Result<(), HostError> {
    edits.iter().try_for_each(|edit| match edit {
        Edit::Set(name, value) => set(map, name, value),
        Edit::Add(name, value) => add(map, name, value),
        Edit::Remove(name) => remove(map, name),
    })
}

/// Replaces all headers by these, in this order. They must include the pseudo-headers that a request or response needs.
pub fn replace_all(map: Map, headers: &[(&[u8], &[u8])]) -> Result<(), HostError> {
    headers.iter().try_for_each(|(_, value)| check_value(value))?;
    calls::set_header_pairs(map, &Pairs::of(headers))
}

/// Control bytes: Envoy's codecs close the whole connection when a filter emits one.
pub(crate) fn check_value(value: &[u8]) -> Result<(), HostError> {
    let forbidden = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
    if value.iter().any(forbidden) { Err(HostError::ForbiddenByte) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_bytes_never_reach_the_host() {
        for value in [&b"a\nb"[..], b"\r", b"\0", b"\x7f", b"\x1f"] {
            assert_eq!(set(Map::Request, "x", value), Err(HostError::ForbiddenByte));
            assert_eq!(add(Map::Request, "x", value), Err(HostError::ForbiddenByte));
            assert_eq!(replace_all(Map::Request, &[(b"a", b"1"), (b"x", value)]), Err(HostError::ForbiddenByte));
        }
        for value in [&b"a\tb"[..], b"", b"\x80\xff ~"] {
            assert_eq!(set(Map::Request, "x", value), Err(HostError::Unimplemented));
            assert_eq!(replace_all(Map::Request, &[(b"x", value)]), Err(HostError::Unimplemented));
        }
    }
}
