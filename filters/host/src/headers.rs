//! The header maps. Values are bytes: HTTP allows nearly any octet, and decoding them as UTF-8 has caused outages.

use http_semantics::Edit;

use crate::error::HostError;
use crate::ffi;

/// Names a header map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Map {
    /// Headers of the request; can be edited in the request headers callback.
    Request = 0,
    /// Trailers of the request.
    RequestTrailers = 1,
    /// Headers of the response; can be edited until they have been sent, in the response headers callback.
    Response = 2,
    /// Trailers of the response.
    ResponseTrailers = 3,
    /// Headers of the response to a [`callout`](crate::callout), in its callback.
    CalloutResponse = 6,
}

/// Returns the first value of `name` (lower case), or none.
pub fn get(map: Map, name: &str) -> Result<Option<Vec<u8>>, HostError> {
    match ffi::get_header(map as u32, name) {
        Ok(value) => Ok(Some(value)),
        Err(HostError::NotFound | HostError::Empty) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns every header, in order, with one host call and one copy.
pub fn list(map: Map) -> Result<Pairs, HostError> {
    ffi::get_header_pairs(map as u32).map(|data| Pairs { data })
}

/// Sets `name` to the single value `value`, and removes its earlier values.
pub fn set(map: Map, name: &str, value: &[u8]) -> Result<(), HostError> {
    check_value(value)?;
    ffi::replace_header(map as u32, name, value)
}

/// Adds one value of `name` to those that exist.
pub fn add(map: Map, name: &str, value: &[u8]) -> Result<(), HostError> {
    check_value(value)?;
    ffi::add_header(map as u32, name, value)
}

/// Removes every value of `name`, and succeeds if there is none.
pub fn remove(map: Map, name: &str) -> Result<(), HostError> {
    match ffi::remove_header(map as u32, name) {
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
    ffi::set_header_pairs(map as u32, &serialize(headers))
}

/// Control bytes: Envoy's codecs close the whole connection when a filter emits one.
pub(crate) fn check_value(value: &[u8]) -> Result<(), HostError> {
    let forbidden = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
    if value.iter().any(forbidden) { Err(HostError::ForbiddenByte) } else { Ok(()) }
}

/// Headers in the host's serialisation, read without copying.
#[derive(Debug, Clone, Default)]
pub struct Pairs {
    data: Vec<u8>,
}

impl Pairs {
    /// Iterates over the names and values, in order. It ends early if the serialisation is malformed.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        // Layout (ABI 0.2.1): count, then count times (name length, value length), then names and values, each
        // followed by a zero byte; numbers are 32-bit little endian.
        let count = read_u32(&self.data, 0).unwrap_or(0);
        let lengths_end = 4_usize.saturating_add(count.saturating_mul(8));
        let mut sizes_at = 4_usize;
        let mut at = lengths_end;
        std::iter::from_fn(move || {
            if sizes_at >= lengths_end {
                return None;
            }
            let name = next(&self.data, &mut sizes_at, &mut at)?;
            let value = next(&self.data, &mut sizes_at, &mut at)?;
            Some((name, value))
        })
    }
}

fn next<'a>(data: &'a [u8], sizes_at: &mut usize, at: &mut usize) -> Option<&'a [u8]> {
    let size = read_u32(data, *sizes_at)?;
    let end = at.checked_add(size)?;
    let bytes = data.get(*at..end)?;
    *sizes_at = sizes_at.checked_add(4)?;
    *at = end.checked_add(1)?;
    Some(bytes)
}

fn read_u32(data: &[u8], at: usize) -> Option<usize> {
    let bytes = data.get(at..at.checked_add(4)?)?;
    usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
}

/// Serialises headers for the host; the reverse of [`Pairs::iter`].
pub(crate) fn serialize<Name: AsRef<[u8]>>(headers: &[(Name, &[u8])]) -> Vec<u8> {
    let mut data = Vec::new();
    let number = |data: &mut Vec<u8>, value: usize| {
        data.extend_from_slice(&u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes());
    };
    number(&mut data, headers.len());
    for (name, value) in headers {
        number(&mut data, name.as_ref().len());
        number(&mut data, value.len());
    }
    for (name, value) in headers {
        data.extend_from_slice(name.as_ref());
        data.push(0);
        data.extend_from_slice(value);
        data.push(0);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_read_back_what_was_serialised() {
        let headers: [(&str, &[u8]); 4] =
            [(":status", b"200"), ("x", b""), ("content-type", b"text/html"), ("x", b"\xff\x80")];
        let pairs = Pairs { data: serialize(&headers) };
        let read: Vec<_> = pairs.iter().collect();
        let expected: Vec<(&[u8], &[u8])> = headers.iter().map(|(name, value)| (name.as_bytes(), *value)).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn a_broken_serialisation_ends_the_list_and_nothing_else() {
        let whole = serialize(&[("a", b"1"), ("bb", b"22")]);
        for length in 0..whole.len() {
            let pairs = Pairs { data: whole.get(..length).unwrap().to_vec() };
            assert!(pairs.iter().count() <= 2);
        }
        let lying = Pairs { data: vec![0xff; 64] };
        assert_eq!(lying.iter().count(), 0);
    }

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
