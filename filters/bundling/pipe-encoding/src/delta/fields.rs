//! The header fields of deltas. Names are in hexadecimal.
//!
//! | message | field | value |
//! |---|---|---|
//! | request | `x-longhaul-takes` | lists `delta`: the remote reads deltas |
//! | request | `x-longhaul-base` | the first 8 bytes of the names of bases that the remote has |
//! | request | `x-longhaul-base` | `none`: the remote sends the request again, because it has lost a base |
//! | response | `x-longhaul-base` | `keep`: both ends keep this page. A name: this page is a delta of that one |
//! | response | `content-encoding` | `x-longhaul-br`: the body is a delta |
//!
//! A remote has no base before a ground has said `keep`. So a ground that does not know deltas never sees the names.

use hex::FromHex as _;
use http_semantics::Fields;

use super::bases::Name;
use super::limits;

/// The field of requests and responses that names bases.
pub(crate) const BASE_FIELD: &str = "x-longhaul-base";
/// The content encoding of a delta.
pub(super) const CODING: &str = "x-longhaul-br";
/// The item of [`crate::TAKES_FIELD`] by which a remote says that it reads deltas.
pub(crate) const TAKES_DELTA: &str = "delta";

const KEEP: &[u8] = b"keep";
/// The value of a request that is sent again. Header compression leaves such a request plain, because nobody retries it.
pub(super) const NO_BASE: &str = "none";

/// The first bytes of a name. The response holds the whole name, so a collision costs only speed.
pub(super) type Short = [u8; 8];

/// Returns the beginning of a name.
pub(super) fn short(name: &Name) -> Short {
    name.first_chunk().copied().unwrap_or_default()
}

/// Returns the value of a request's field.
pub(super) fn offer(names: &[Name]) -> Vec<u8> {
    names.iter().map(|name| hex::encode(short(name))).collect::<Vec<_>>().join(",").into_bytes()
}

/// Returns the bases that a request names, [`limits::PAGES`] at most.
pub(super) fn offered(request: &Fields<'_>) -> Vec<Short> {
    request.items(BASE_FIELD).filter_map(|item| Short::from_hex(item).ok()).take(limits::PAGES).collect()
}

/// The ground's message about one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Told {
    /// True if both ends keep the page.
    pub(super) keep: bool,
    /// The base of the page.
    pub(super) base: Option<Name>,
}

impl Told {
    /// Returns the value of a response's field. None if there is nothing to say.
    pub(super) fn value(self) -> Option<Vec<u8>> {
        let items = [self.keep.then(|| KEEP.to_vec()), self.base.map(|base| hex::encode(base).into_bytes())];
        let items: Vec<Vec<u8>> = items.into_iter().flatten().collect();
        (!items.is_empty()).then(|| items.join(&b','))
    }

    /// Reads a response. Ignores items that it does not know.
    pub(super) fn of(response: &Fields<'_>) -> Self {
        Self {
            keep: response.items(BASE_FIELD).any(|item| item == KEEP),
            base: response.items(BASE_FIELD).find_map(|item| Name::from_hex(item).ok()),
        }
    }
}

/// Returns true if the body is a delta.
pub(super) fn is_delta(response: &Fields<'_>) -> bool {
    response.items("content-encoding").eq([CODING.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_read_what_the_other_writes() {
        let names = [[7; 24], [0xfe; 24]];
        let value = offer(&names);
        assert_eq!(value.len(), 2 * 16 + 1);
        assert_eq!(offered(&[(BASE_FIELD.as_bytes(), &*value)].into_iter().collect()), names.map(|name| short(&name)));
        for told in [(false, Some([9; 24])), (true, None), (true, Some([1; 24]))] {
            let told = Told { keep: told.0, base: told.1 };
            let value = told.value().unwrap();
            assert_eq!(Told::of(&[(BASE_FIELD.as_bytes(), &*value)].into_iter().collect()), told);
        }
        assert_eq!(Told::default().value(), None);
    }

    #[test]
    fn junk_is_ignored_and_no_request_names_more_than_four() {
        let junk = b"keeper, 00, zz00000000000000, \xff,,00112233445566zz";
        let list = [(BASE_FIELD.as_bytes(), &junk[..])];
        assert_eq!(offered(&list.into_iter().collect()), Vec::<Short>::new());
        assert_eq!(Told::of(&list.into_iter().collect()), Told::default());
        let many = offer(&[[1; 24]; 9]);
        assert_eq!(offered(&[(BASE_FIELD.as_bytes(), &*many)].into_iter().collect()).len(), limits::PAGES);
    }
}
