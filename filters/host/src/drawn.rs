//! Random bytes without a call of the host.

use std::hash::{BuildHasher, RandomState};

/// Fills `bytes` with hashes under the seed that the standard library requests from the system.
pub(crate) fn fill(bytes: &mut [u8]) {
    for part in bytes.chunks_mut(8) {
        let hash = RandomState::new().hash_one(0).to_le_bytes();
        part.iter_mut().zip(hash).for_each(|(byte, random)| *byte = random);
    }
}
