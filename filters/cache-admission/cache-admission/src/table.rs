//! States of URLs that all workers share: a bounded table, in values that the proxy keeps.
//!
//! Buckets have fixed names, because a name costs memory for as long as the process lives. A URL is found by a hash
//! under a random key, which the first worker draws. So nobody can choose URLs that share a bucket. The table is empty
//! after a restart and learns again. Until then, a response on disk is used only after validation by its origin
//! ([`Known::Storable`]).

use std::hash::Hasher;

use shared_board::{Board, settled, update};
use siphasher::sip::SipHasher13;

use crate::limits::{BUCKET_ENTRIES, BUCKETS, COMING_S};

/// A URL in the form of a cache key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// `http` or `https`.
    pub scheme: Vec<u8>,
    /// The value of `Host`.
    pub authority: Vec<u8>,
    /// Path and query.
    pub path: Vec<u8>,
}

/// The state of a URL, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Its response may be stored. The cache may hold an older one.
    Storable {
        /// True if it is also for clients that send cookies.
        public: bool,
    },
    /// Its response is stored and fresh.
    Held {
        /// True if it is also for clients that send cookies.
        public: bool,
    },
    /// Longhaul itself is fetching the response.
    Coming,
}

const STORABLE: u8 = 1;
const HELD: u8 = 2;
const COMING: u8 = 3;
const PUBLIC: u8 = 0x80;
/// Bytes of an entry: tag, seconds, state.
const ENTRY_BYTES: usize = 13;
const KEY: &str = "key";

/// The table, shared by all workers.
#[derive(Debug, Clone)]
pub struct Table<B> {
    board: B,
    key: [u8; 16],
}

impl<B: Board> Table<B> {
    /// Opens the table of this process. `drawn` becomes its hash key if no worker has set one before.
    pub fn new(board: B, drawn: [u8; 16]) -> Self {
        let key = settled(&board, KEY, drawn);
        Self { board, key }
    }

    /// Returns the state of a URL at `now_s`, in Unix seconds.
    pub fn look(&self, url: &Url, now_s: u32) -> Option<Known> {
        let (name, tag) = self.place(url);
        let (bucket, _) = self.board.get(&name);
        let entry = bucket.chunks_exact(ENTRY_BYTES).find(|entry| entry.starts_with(&tag))?;
        let until = u32::from_le_bytes(entry.get(8..12)?.try_into().ok()?);
        let state = *entry.get(12)?;
        let public = state & PUBLIC != 0;
        match state & !PUBLIC {
            HELD if until > now_s => Some(Known::Held { public }),
            STORABLE | HELD => Some(Known::Storable { public }),
            COMING if until > now_s => Some(Known::Coming),
            _ => None,
        }
    }

    /// Records that a complete response may be stored.
    pub fn storable(&self, url: &Url, public: bool) {
        self.put(url, 0, STORABLE, public);
    }

    /// Records that the response is stored, and fresh for `left_s` seconds from `now_s` on.
    pub fn held(&self, url: &Url, public: bool, left_s: u64, now_s: u32) {
        let left = u32::try_from(left_s).unwrap_or(u32::MAX);
        self.put(url, now_s.saturating_add(left), HELD, public);
    }

    /// Records that Longhaul itself is fetching the response.
    pub fn coming(&self, url: &Url, now_s: u32) {
        self.put(url, now_s.saturating_add(COMING_S), COMING, false);
    }

    /// Removes the entry of a URL.
    pub fn forget(&self, url: &Url) {
        self.change(url, None);
    }

    fn put(&self, url: &Url, until_s: u32, state: u8, public: bool) {
        self.change(url, Some((until_s, state | if public { PUBLIC } else { 0 })));
    }

    /// Replaces or removes the entry. The newest entry stands first.
    fn change(&self, url: &Url, entry: Option<(u32, u8)>) {
        let (name, tag) = self.place(url);
        update(&self.board, &name, |bucket| {
            let mut changed = Vec::with_capacity(BUCKET_ENTRIES * ENTRY_BYTES);
            if let Some((until_s, state)) = entry {
                changed.extend_from_slice(&tag);
                changed.extend_from_slice(&until_s.to_le_bytes());
                changed.push(state);
            }
            for old in bucket.chunks_exact(ENTRY_BYTES).filter(|old| !old.starts_with(&tag)) {
                if changed.len() < BUCKET_ENTRIES * ENTRY_BYTES {
                    changed.extend_from_slice(old);
                }
            }
            (changed != bucket).then_some(changed)
        });
    }

    /// Returns the name of the bucket of a URL, and its tag in it.
    fn place(&self, url: &Url) -> (String, [u8; 8]) {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        for part in [&url.scheme, &url.authority, &url.path] {
            hasher.write(part);
            // No part contains a line break.
            hasher.write(b"\n");
        }
        let hash = hasher.finish();
        (format!("b{}", hash % BUCKETS), hash.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared_board::Memory;

    fn url(path: &str) -> Url {
        Url { scheme: b"http".to_vec(), authority: b"a.test".to_vec(), path: path.as_bytes().to_vec() }
    }

    #[test]
    fn what_is_known_has_its_time_and_is_known_to_every_worker() {
        let board = Memory::default();
        let (one, other) = (Table::new(&board, [1; 16]), Table::new(&board, [2; 16]));
        assert_eq!(one.look(&url("/"), 100), None);
        one.storable(&url("/"), true);
        assert_eq!(other.look(&url("/"), u32::MAX), Some(Known::Storable { public: true }));
        other.held(&url("/"), false, 60, 100);
        assert_eq!(one.look(&url("/"), 159), Some(Known::Held { public: false }));
        assert_eq!(one.look(&url("/"), 160), Some(Known::Storable { public: false }), "not fresh any more");
        one.coming(&url("/"), 100);
        assert_eq!(one.look(&url("/"), 129), Some(Known::Coming));
        assert_eq!(one.look(&url("/"), 130), None, "it did not come");
        one.held(&url("/"), false, u64::MAX, 100);
        assert_eq!(one.look(&Url { scheme: b"https".to_vec(), ..url("/") }, 100), None);
        one.forget(&url("/"));
        assert_eq!(one.look(&url("/"), 100), None);
    }

    #[test]
    fn it_holds_so_much_and_no_more() {
        let board = Memory::default();
        let table = Table::new(&board, [7; 16]);
        for number in 0..100_000 {
            table.storable(&url(&format!("/{number}")), false);
        }
        let sizes = board.sizes();
        assert!(sizes.len() as u64 <= BUCKETS + 1);
        assert!(sizes.iter().all(|(_, bytes)| *bytes <= BUCKET_ENTRIES * ENTRY_BYTES));
        assert!(table.look(&url("/99999"), 0).is_some(), "the newest is there");
    }
}
