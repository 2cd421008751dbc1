//! The names of stored responses.

use std::fmt;

use sha2::{Digest, Sha256};

/// The hash of a URL, or of a URL and the request's values for the fields in `Vary`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 16]);

impl Key {
    /// Returns the key of a URL: its scheme, its host with the port, and its path with the query.
    pub fn of_url(scheme: &[u8], host: &[u8], path: &[u8]) -> Self {
        hash([b"url".as_slice(), scheme, host, path])
    }

    /// Returns the key of the variant that `values` select (`object_rules::variant::values`), below the marker `stamp` of the
    /// URL.
    pub fn of_variant(url: Self, stamp: u64, values: &[u8]) -> Self {
        hash([b"variant".as_slice(), &url.0, &stamp.to_le_bytes(), values])
    }

    /// Reads the hexadecimal name that [`Display`](fmt::Display) writes. Other texts give `None`.
    pub fn from_name(name: &str) -> Option<Self> {
        let is_name = name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_name {
            return None;
        }
        u128::from_str_radix(name, 16).ok().map(|number| Self(number.to_be_bytes()))
    }

    /// Returns the name of the folder that holds the file.
    pub(crate) fn folder(self) -> String {
        let [first, ..] = self.0;
        format!("{first:02x}")
    }
}

/// A URL, and its key. Every process that fills or reads a store names responses in this way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The key of the URL.
    pub key: Key,
    /// The URL.
    pub url: Vec<u8>,
}

impl Name {
    /// Names the response for a URL: its scheme, its host in any case with the port, and its path with the query.
    pub fn of_url(scheme: &[u8], host: &[u8], path: &[u8]) -> Self {
        let host = host.to_ascii_lowercase();
        Self { key: Key::of_url(scheme, &host, path), url: [scheme, b"://", &host, path].concat() }
    }
}

/// Writes 32 hexadecimal digits.
impl fmt::Display for Key {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Takes the first half of SHA-256. Each part has its length before it, so that no two lists of parts look alike.
fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Key {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    Key(first_half(hasher))
}

/// Returns the first 16 bytes of the hash.
pub(crate) fn first_half(hasher: Sha256) -> [u8; 16] {
    let whole: [u8; 32] = hasher.finalize().into();
    let mut half = [0; 16];
    for (to, from) in half.iter_mut().zip(whole) {
        *to = from;
    }
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_cut_elsewhere_give_another_key() {
        let key = Key::of_url(b"https", b"a.example", b"/b");
        assert_ne!(key, Key::of_url(b"https", b"a.example/", b"b"));
        assert_ne!(key, Key::of_url(b"http", b"a.example", b"/b"));
        let one = Key::of_variant(key, 1, b"ab");
        for other in
            [Key::of_variant(key, 2, b"ab"), Key::of_variant(key, 1, b"a"), Key::of_variant(one, 1, b"ab"), key]
        {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn a_name_is_read_back_and_other_texts_are_not() {
        let key = Key::of_url(b"https", b"a.example", b"/");
        let name = key.to_string();
        assert_eq!(Key::from_name(&name), Some(key));
        assert!(name.starts_with(&key.folder()));
        for other in ["", "+0000000000000000000000000000000", &name[1..], &name.to_uppercase(), "../../etc/passwd"] {
            assert_eq!(Key::from_name(other), None, "{other}");
        }
    }
}
