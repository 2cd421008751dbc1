//! The two hash functions of the wire format. Neither needs to resist an attacker. Contexts that collide only cost
//! bytes, and the codec compares the bytes of names and values wherever equality matters.

/// Returns the FNV-1a hash of bytes, finished by [`mix`] so that all bits are usable.
pub(crate) fn bytes(text: &[u8]) -> u32 {
    pieces([text])
}

/// Returns [`bytes`] of a text that consists of several pieces.
pub(crate) fn pieces<const COUNT: usize>(pieces: [&[u8]; COUNT]) -> u32 {
    let mut length = 0_usize;
    let mut sum = 0x811c_9dc5_u32;
    for piece in pieces {
        length = length.saturating_add(piece.len());
        sum = piece.iter().fold(sum, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    }
    mix(sum, u32::try_from(length).unwrap_or(u32::MAX))
}

/// Mixes two numbers into one: multiply, fold and multiply again, after the finaliser of `MurmurHash3`.
pub(crate) fn mix(left: u32, right: u32) -> u32 {
    let sum = (left.wrapping_mul(0x9e37_79b1) ^ right).wrapping_mul(0x85eb_ca6b);
    let sum = (sum ^ (sum >> 15)).wrapping_mul(0xc2b2_ae35);
    sum ^ (sum >> 13)
}
