//! Moments that all workers share: for each tag the moment until which it counts, in values that the proxy keeps.
//!
//! Buckets have fixed names, because a name costs memory for as long as the process lives. A tag is a hash under a
//! random key, which the first worker draws. So nobody can choose names that share a bucket.

use std::hash::Hasher;

use shared_board::{Board, update};
use siphasher::sip::SipHasher13;

use crate::limits::BUCKET_ENTRIES;

/// Bytes of an entry: tag and moment.
const ENTRY_BYTES: usize = 16;

/// One kind of entry, with its own buckets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// The first letter of the names of its buckets.
    pub(crate) letter: char,
    pub(crate) buckets: u64,
}

impl Times {
    /// Returns the moment until which `parts` count, if it is after `now`.
    pub(crate) fn until(self, board: &impl Board, key: [u8; 16], parts: &[&[u8]], now: u64) -> Option<u64> {
        let (bucket, tag) = self.place(key, parts);
        entries(&board.get(&bucket).0).find(|(found, until)| *found == tag && *until > now).map(|(_, until)| until)
    }

    /// Sets the moment for `parts` to the result of `change`. `change` gets the present moment, or `now` if there is
    /// none, and may refuse. Returns its last result, also if the write failed because other workers were always
    /// faster.
    pub(crate) fn change<E>(
        self,
        board: &impl Board,
        key: [u8; 16],
        parts: &[&[u8]],
        now: u64,
        change: impl Fn(u64) -> Result<u64, E>,
    ) -> Result<(), E> {
        let (name, tag) = self.place(key, parts);
        let mut outcome = Ok(());
        update(board, &name, |bucket| {
            let mut live: Vec<(u64, u64)> = entries(bucket).filter(|(_, until)| *until > now).collect();
            let present = live.iter().find(|(found, _)| *found == tag).map_or(now, |(_, until)| *until);
            let changed = change(present);
            let until = changed.as_ref().ok().copied();
            outcome = changed.map(drop);
            live.retain(|(found, _)| *found != tag);
            live.sort_unstable_by_key(|(_, until)| std::cmp::Reverse(*until));
            // The entry that ends first makes room.
            live.truncate(BUCKET_ENTRIES - 1);
            live.push((tag, until?));
            Some(live.iter().flat_map(|(tag, until)| [tag.to_le_bytes(), until.to_le_bytes()]).flatten().collect())
        });
        outcome
    }

    /// Returns the name of the bucket of `parts`, and their tag in it.
    fn place(self, key: [u8; 16], parts: &[&[u8]]) -> (String, u64) {
        let mut hasher = SipHasher13::new_with_key(&key);
        for part in parts {
            hasher.write(&part.len().to_le_bytes());
            hasher.write(part);
        }
        let hash = hasher.finish();
        (format!("{}{}", self.letter, hash % self.buckets), hash)
    }
}

fn entries(bucket: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    bucket.chunks_exact(ENTRY_BYTES).filter_map(|entry| {
        let (tag, until) = entry.split_first_chunk::<8>()?;
        Some((u64::from_le_bytes(*tag), u64::from_le_bytes(until.try_into().ok()?)))
    })
}
