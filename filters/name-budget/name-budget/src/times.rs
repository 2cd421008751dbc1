//! What all workers know: for each tag the moment until which it counts, in values that the proxy shares.
//!
//! Buckets have fixed names, because a name costs memory for as long as the process lives. A tag is a hash under a key that
//! the first worker draws, so that nobody can choose names that share a bucket.

use std::hash::Hasher;

use shared_board::{Board, update};
use siphasher::sip::SipHasher13;

use crate::limits::BUCKET_ENTRIES;

/// Tag and moment.
const ENTRY_BYTES: usize = 16;

/// One kind of thing that counts for a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Begins the names of its buckets.
    pub(crate) letter: char,
    pub(crate) buckets: u64,
}

impl Times {
    /// The moment until which `parts` count, if that is after `now`.
    pub(crate) fn until(self, board: &impl Board, key: [u8; 16], parts: &[&[u8]], now: u64) -> Option<u64> {
        let (bucket, tag) = self.place(key, parts);
        entries(&board.get(&bucket).0).find(|(found, until)| *found == tag && *until > now).map(|(_, until)| until)
    }

    /// Sets the moment for `parts` to what `change` makes of the present one (`now`, where there is none). `change` may
    /// refuse. What it returned last is returned, also where other workers were always faster.
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
            // The one that ends first makes room.
            live.truncate(BUCKET_ENTRIES - 1);
            live.push((tag, until?));
            Some(live.iter().flat_map(|(tag, until)| [tag.to_le_bytes(), until.to_le_bytes()]).flatten().collect())
        });
        outcome
    }

    /// The bucket of `parts`, and their tag there.
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
