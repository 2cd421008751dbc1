//! What all workers see: marks of visitors, under names that the core bounds.

use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use filter_host::{property, shared};
use url_rewriting::inline::Board;

/// Values that the proxy keeps for all workers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProxyBoard;

impl Board for ProxyBoard {
    fn get(&self, name: &str) -> (Vec<u8>, u32) {
        shared::get(name).map(|found| (found.value, found.version)).unwrap_or_default()
    }

    fn set(&self, name: &str, value: &[u8], version: u32) -> bool {
        shared::set(name, value, version).unwrap_or(false)
    }
}

/// What marks of this process are salted with: drawn by the first worker that asks.
pub(crate) fn salt() -> [u8; 8] {
    const NAME: &str = "salt";
    let drawn = RandomState::new().hash_one(0).to_le_bytes();
    let board = ProxyBoard;
    let (found, version) = board.get(NAME);
    if found.is_empty() {
        // If another worker is faster, its draw is found below.
        board.set(NAME, &drawn, version);
    }
    board.get(NAME).0.try_into().unwrap_or(drawn)
}

/// Hours since 1970, the same for all workers.
pub(crate) fn now_h() -> u32 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(elapsed.as_secs() / 3600).unwrap_or(u32::MAX)
}

/// Who is at the other end of the stream's connection; nothing where the proxy does not say.
pub(crate) fn client_address() -> Vec<u8> {
    property::get(&["source", "address"]).ok().flatten().unwrap_or_default()
}
