//! Random bytes for keys, salts and names that nobody else may guess.

use crate::calls;

/// Returns `N` bytes that differ at every call.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut drawn = [0; N];
    calls::random(&mut drawn);
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
