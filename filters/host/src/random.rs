//! Random bytes for keys, salts and names that nobody else may guess.

use std::hash::{BuildHasher, RandomState};

/// Returns `N` bytes that differ at every call: hashes under the seed that the standard library requests from the host.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut drawn = [0; N];
    for part in drawn.chunks_mut(8) {
        let hash = RandomState::new().hash_one(0).to_le_bytes();
        part.iter_mut().zip(hash).for_each(|(byte, random)| *byte = random);
    }
    drawn
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_byte_of_every_draw_is_another_one() {
        let draws: Vec<[u8; 20]> = (0..64).map(|_| super::bytes()).collect();
        for place in 0..20 {
            let values: std::collections::BTreeSet<u8> =
                draws.iter().filter_map(|draw| draw.get(place).copied()).collect();
            assert!(values.len() > 32, "byte {place} takes {} values in 64 draws", values.len());
        }
    }
}
