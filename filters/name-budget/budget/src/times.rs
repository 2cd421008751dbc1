//! What all workers know: for each tag the moment until which it counts, in values that the proxy shares.
//!
//! Buckets have fixed names, because a name costs memory for as long as the process lives. A tag is a hash under a key that
//! the first worker draws, so that nobody can choose names that share a bucket.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::limits::BUCKET_ENTRIES;

/// Values that all workers share.
pub trait Board {
    /// A value and its version; empty and 0 where there is none.
    fn get(&self, name: &str) -> (Vec<u8>, u32);
    /// Sets a value if its version is still `version`; false if another worker was faster.
    fn set(&self, name: &str, value: &[u8], version: u32) -> bool;
}

/// Tag and moment.
const ENTRY_BYTES: usize = 16;
const KEY: &str = "key";
/// Another worker that is faster this often wins.
const ATTEMPTS: usize = 4;

/// The key of this process. `drawn` becomes it if no worker has drawn one before.
pub(crate) fn key(board: &impl Board, drawn: [u8; 16]) -> [u8; 16] {
    let (found, _) = board.get(KEY);
    if found.is_empty() {
        // Where no value is, every version sets it; later ones lose.
        board.set(KEY, &drawn, 1);
    }
    board.get(KEY).0.try_into().unwrap_or(drawn)
}

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
        for _ in 0..ATTEMPTS {
            let (bucket, version) = board.get(&name);
            let mut live: Vec<(u64, u64)> = entries(&bucket).filter(|(_, until)| *until > now).collect();
            let present = live.iter().find(|(found, _)| *found == tag).map_or(now, |(_, until)| *until);
            let until = change(present)?;
            live.retain(|(found, _)| *found != tag);
            live.sort_unstable_by_key(|(_, until)| std::cmp::Reverse(*until));
            // The one that ends first makes room.
            live.truncate(BUCKET_ENTRIES - 1);
            live.push((tag, until));
            let bytes: Vec<u8> =
                live.iter().flat_map(|(tag, until)| [tag.to_le_bytes(), until.to_le_bytes()]).flatten().collect();
            if board.set(&name, &bytes, version) {
                break;
            }
        }
        Ok(())
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
