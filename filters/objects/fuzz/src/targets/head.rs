//! The head of a stored response, from a file that anything may have torn.

use object_store::{decode, encode};
use sha2::{Digest, Sha256};

/// Laws: no bytes make the reader panic. A head that was read and written again reads the same. The first bytes of the file
/// hold a checksum. So the input is read as it is, and then as the text behind a checksum that fits.
pub fn head(data: &[u8]) {
    read(data);
    read(&sealed(data));
}

/// Returns true if the bytes are a head.
pub(crate) fn read(data: &[u8]) -> bool {
    let Ok(placed) = decode(data) else { return false };
    let written = encode(&placed).expect("what was read can be written");
    assert_eq!(decode(&written).as_ref(), Ok(&placed));
    assert!(data.starts_with(&written), "a head has one form");
    true
}

/// Returns a file whose text is `text`.
pub(crate) fn sealed(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes();
    let sum = Sha256::digest(text);
    [b"LHO1", &length[..], &sum[..16], text].concat()
}
