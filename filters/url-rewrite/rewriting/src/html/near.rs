//! Bytes that are usually near. `memchr` is unbeaten over long distances, but its start costs more than the few bytes
//! between two tags or two quotes; so the first words are looked at here, and it takes over behind them.

use memchr::memchr;

/// Words of eight bytes before `memchr` takes over.
const WORDS: usize = 4;

/// Where `byte` stands first.
#[inline]
pub(super) fn find(byte: u8, bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    for words in 0..WORDS {
        let Some((word, behind)) = rest.split_first_chunk::<8>() else {
            break;
        };
        let found = equal(u64::from_le_bytes(*word), byte);
        if found != 0 {
            return Some(words * 8 + first(found));
        }
        rest = behind;
    }
    let passed = bytes.len() - rest.len();
    let distance = if rest.len() < 8 { rest.iter().position(|&other| other == byte) } else { memchr(byte, rest) };
    distance.map(|distance| passed + distance)
}

/// The highest bit of each byte that is equal, exact up to the first one (bytes above may be wrong).
fn equal(word: u64, byte: u8) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = u64::from_le_bytes([0x80; 8]);
    let zero = word ^ (ONES * u64::from(byte));
    zero.wrapping_sub(ONES) & !zero & HIGHEST
}

fn first(bits: u64) -> usize {
    (bits.trailing_zeros() / 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_is_found_at_any_distance_behind_any_other_bytes() {
        for other in [b'a', b'<' - 1, b'<' + 1, b'<' | 0x80, 0, 0xFF] {
            for length in 0..80 {
                let mut bytes = vec![other; length];
                assert_eq!(find(b'<', &bytes), None, "{length} of {other}");
                for at in (0..length).rev() {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = b'<';
                    }
                    assert_eq!(find(b'<', &bytes), Some(at), "{at} in {length} of {other}");
                }
            }
        }
    }
}
