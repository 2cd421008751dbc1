//! Chooses one of several targets for a host.

/// Returns the index of the target with the highest random weight for `host` (rendezvous hashing over the targets'
/// names).
///
/// The choice depends neither on the order of the list nor on the process. So all proxies of an operator make the same
/// choice, and a new target takes only the hosts for which it has the highest weight.
pub(crate) fn winner<'a>(host: &str, targets: impl Iterator<Item = &'a str>) -> Option<usize> {
    targets
        .enumerate()
        .max_by_key(|(_, target)| mix(fnv1a(fnv1a(OFFSET, target.as_bytes()), host.as_bytes())))
        .map(|(index, _)| index)
}

/// FNV-1a with 64 bits (Fowler, Noll, Vo). It is not for secrets, but it is the same on all machines and never changes.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

fn fnv1a(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// Spreads the bits of a hash (xor, shift, multiply). FNV changes the high bits little for short inputs, and the choice
/// between targets compares whole words.
fn mix(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_targets_does_not_matter() {
        for n in 0..100 {
            let host = format!("h{n}.example");
            let forth = ["a.example", "b.example", "c.example"];
            let back = ["c.example", "b.example", "a.example"];
            let first = winner(&host, forth.into_iter()).and_then(|i| forth.get(i).copied());
            let second = winner(&host, back.into_iter()).and_then(|i| back.get(i).copied());
            assert_eq!(first, second);
            assert!(first.is_some());
        }
    }

    #[test]
    fn hosts_spread_evenly_and_a_new_target_moves_only_what_it_wins() {
        let mut counts = [0_usize; 4];
        for n in 0..4000 {
            let host = format!("img{n}.example");
            let three = winner(&host, ["a", "b", "c"].into_iter()).unwrap();
            let four = winner(&host, ["a", "b", "c", "d"].into_iter()).unwrap();
            assert!(four == three || four == 3);
            counts[four] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn shards_are_the_same_in_every_release() {
        let targets = ["pep1.example.net", "pep2.example.net"];
        let picks: Vec<_> = ["i.cnn.net", "cdn.example", "192.0.2.1"]
            .into_iter()
            .map(|host| winner(host, targets.into_iter()))
            .collect();
        assert_eq!(picks, [Some(0), Some(1), Some(0)]);
    }
}
