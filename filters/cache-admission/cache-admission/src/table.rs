//! States of URLs that all workers share: a bounded table, in values that the proxy keeps.
//!
//! The table is empty after a restart and learns again. Until then, a response on disk is used only after validation by
//! its origin ([`Known::Storable`]).

use shared_board::{Board, Buckets, settled};

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
/// An entry is a moment in Unix seconds, and the state.
const TABLE: Buckets<5> = Buckets { prefix: "b", buckets: BUCKETS, entries: BUCKET_ENTRIES };
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
        let [a, b, c, d, state] = TABLE.get(&self.board, self.key, &url.parts())?;
        let until = u32::from_le_bytes([a, b, c, d]);
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
        let [a, b, c, d] = until_s.to_le_bytes();
        self.change(url, Some([a, b, c, d, state | if public { PUBLIC } else { 0 }]));
    }

    fn change(&self, url: &Url, entry: Option<[u8; 5]>) {
        // The entry that changed longest ago makes room.
        TABLE.change(&self.board, self.key, &url.parts(), |_| Some(0), |_| entry);
    }
}

impl Url {
    fn parts(&self) -> [&[u8]; 3] {
        [&self.scheme, &self.authority, &self.path]
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
    fn lessons_expire_and_every_worker_knows_them() {
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
        assert!(sizes.iter().all(|(_, bytes)| *bytes <= BUCKET_ENTRIES * 13));
        assert!(table.look(&url("/99999"), 0).is_some(), "the newest is there");
    }
}
