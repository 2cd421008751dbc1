use std::cmp::Reverse;
use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::{Board, update};

/// Bytes of the tag by which a bucket finds an entry.
const TAG: usize = 8;

/// A bounded table on a board. Each entry has `N` bytes, and a key of several parts.
///
/// A fixed number of buckets with fixed names hold the entries. A tag of 8 bytes stands for the key of an entry: a hash
/// under a secret, so that nobody can choose keys that share a bucket. [`settled`](crate::settled) makes a secret.
#[derive(Debug, Clone, Copy)]
pub struct Buckets<const N: usize> {
    /// The beginning of the names of the buckets.
    pub prefix: &'static str,
    /// The number of buckets, at least 1.
    pub buckets: u64,
    /// The number of entries that a bucket holds, at least 1. An entry takes `N` + 8 bytes.
    pub entries: usize,
}

impl<const N: usize> Buckets<N> {
    /// Returns the entry of `key`.
    pub fn get(&self, board: &dyn Board, secret: [u8; 16], key: &[&[u8]]) -> Option<[u8; N]> {
        let (name, tag) = self.place(secret, key);
        entries(&board.get(&name).0).find(|(found, _)| *found == tag).map(|(_, entry)| entry)
    }

    /// Changes the entry of `key` to the one that `change` returns, or removes it. `change` receives the present entry, and
    /// runs again whenever another worker was faster. False if it never succeeded.
    ///
    /// `rank` decides about every entry of the bucket: `None` removes an expired one. In a full bucket the lowest rank
    /// makes room, and among equals the entry that changed longest ago.
    pub fn change(
        &self,
        board: &dyn Board,
        secret: [u8; 16],
        key: &[&[u8]],
        rank: impl Fn([u8; N]) -> Option<u64>,
        mut change: impl FnMut(Option<[u8; N]>) -> Option<[u8; N]>,
    ) -> bool {
        let (name, tag) = self.place(secret, key);
        update(board, &name, |bucket| {
            let (own, mut others): (Vec<_>, Vec<_>) =
                entries(bucket).filter(|(_, entry)| rank(*entry).is_some()).partition(|(found, _)| *found == tag);
            let own = change(own.first().map(|(_, entry)| *entry)).map(|entry| (tag, entry));
            let by_rank = |(_, entry): &(_, [u8; N])| Reverse(rank(*entry));
            others.sort_by_key(by_rank);
            others.truncate(self.entries.saturating_sub(own.iter().len()));
            let mut live: Vec<_> = own.into_iter().chain(others).collect();
            live.sort_by_key(by_rank);
            let changed: Vec<u8> = live.into_iter().flat_map(|(tag, entry)| tag.into_iter().chain(entry)).collect();
            (changed != bucket).then_some(changed)
        })
    }

    /// Returns the name of the bucket of `key`, and the tag there.
    fn place(&self, secret: [u8; 16], key: &[&[u8]]) -> (String, [u8; TAG]) {
        let mut hasher = SipHasher13::new_with_key(&secret);
        for part in key {
            hasher.write(&part.len().to_le_bytes());
            hasher.write(part);
        }
        let hash = hasher.finish();
        (format!("{}{}", self.prefix, hash % self.buckets.max(1)), hash.to_le_bytes())
    }
}

/// Reads the tags and entries of a bucket.
fn entries<const N: usize>(bucket: &[u8]) -> impl Iterator<Item = ([u8; TAG], [u8; N])> {
    bucket.chunks_exact(TAG + N).filter_map(|entry| {
        let (tag, entry) = entry.split_first_chunk()?;
        Some((*tag, entry.try_into().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    const TABLE: Buckets<1> = Buckets { prefix: "b", buckets: 1, entries: 3 };

    fn set(board: &Memory, key: &str, value: Option<u8>, rank: impl Fn([u8; 1]) -> Option<u64>) -> Option<[u8; 1]> {
        let mut present = None;
        assert!(TABLE.change(board, [7; 16], &[key.as_bytes()], rank, |entry| {
            present = entry;
            value.map(|value| [value])
        }));
        present
    }

    fn held(board: &Memory) -> String {
        "abcde".chars().filter(|key| TABLE.get(board, [7; 16], &[key.to_string().as_bytes()]).is_some()).collect()
    }

    #[test]
    fn an_entry_is_found_by_all_parts_of_its_key_and_under_its_secret_only() {
        let (board, any) = (Memory::default(), |_| Some(0));
        assert!(TABLE.change(&board, [7; 16], &[b"ab", b"c"], any, |_| Some([1])));
        assert_eq!(TABLE.get(&board, [7; 16], &[b"ab", b"c"]), Some([1]));
        assert_eq!(TABLE.get(&board, [7; 16], &[b"a", b"bc"]), None);
        assert_eq!(TABLE.get(&board, [8; 16], &[b"ab", b"c"]), None);
    }

    #[test]
    fn in_a_full_bucket_the_entry_that_changed_longest_ago_makes_room() {
        let (board, any) = (Memory::default(), |_| Some(0));
        for key in ["a", "b", "c", "a", "d"] {
            set(&board, key, Some(1), any);
        }
        assert_eq!(held(&board), "acd");
        assert_eq!(board.sizes(), [("b0".to_owned(), 3 * 9)]);
        assert_eq!(set(&board, "c", None, any), Some([1]));
        assert_eq!(held(&board), "ad");
    }

    #[test]
    fn the_lowest_rank_makes_room_but_never_for_the_new_entry_itself() {
        let (board, rank) = (Memory::default(), |[rank]: [u8; 1]| Some(u64::from(rank)));
        for (key, value) in [("a", 9), ("b", 3), ("c", 5), ("d", 4), ("e", 1)] {
            set(&board, key, Some(value), rank);
        }
        assert_eq!(held(&board), "ace");
    }

    #[test]
    fn an_expired_entry_is_none_and_goes_with_the_next_change() {
        let board = Memory::default();
        set(&board, "a", Some(1), |_| Some(0));
        assert_eq!(set(&board, "a", None, |_| None), None);
        assert_eq!(held(&board), "");
    }

    #[test]
    fn nothing_is_written_where_nothing_changes() {
        let (board, rank) = (Memory::default(), |[rank]: [u8; 1]| Some(u64::from(rank)));
        for (key, value) in [("a", 9), ("b", 3)] {
            set(&board, key, Some(value), rank);
        }
        let (_, version) = board.get("b0");
        assert_eq!(set(&board, "b", Some(3), rank), Some([3]));
        assert_eq!(board.get("b0").1, version);
    }

    #[test]
    fn bytes_that_are_no_entry_are_dropped() {
        let board = Memory::default();
        assert!(board.set("b0", b"not an entry but more bytes", 0));
        set(&board, "a", Some(1), |_| Some(0));
        assert_eq!(held(&board), "a");
        assert!(board.sizes().iter().all(|(_, bytes)| bytes % 9 == 0));
    }
}
