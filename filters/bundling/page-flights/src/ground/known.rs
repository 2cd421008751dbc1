//! The objects that the ground believes to be at remotes. This memory is bounded, and forgetting costs only bytes.

use crate::digest::Ident;
use crate::limits;
use shared_board::{Board, update};

/// Objects that remotes hold. The object that has been known the longest is forgotten first. They are on the board for
/// all workers, because a remote's flights arrive on any of its connections.
///
/// A key of eight bytes stands for an object. If two objects had the same key, the remote would not have the second
/// one. It would report that object as lost.
#[derive(Clone, Copy)]
pub(super) struct Known<'b> {
    pub(super) board: &'b dyn Board,
}

fn known_name(store: u64) -> String {
    format!("known/{}", store % limits::STORES)
}

/// Returns the keys that are kept for a store. The value begins with the name of the store, so that a store in the
/// place of another begins without keys.
fn keys_of(value: &[u8], store: u64) -> Vec<[u8; 8]> {
    let mut keys = value.as_chunks::<8>().0.iter().copied();
    if keys.next() == Some(store.to_le_bytes()) { keys.collect() } else { Vec::new() }
}

fn key_of(ident: &Ident) -> [u8; 8] {
    ident.first_chunk().copied().unwrap_or_default()
}

impl Known<'_> {
    /// Notes that `store` gets the object. Returns false if `store` has it already.
    pub(super) fn add(self, store: u64, ident: &Ident) -> bool {
        let mut is_new = false;
        update(self.board, &known_name(store), |value| {
            let mut keys = keys_of(value, store);
            is_new = !keys.contains(&key_of(ident));
            if !is_new {
                return None;
            }
            keys.push(key_of(ident));
            let too_many = keys.len().saturating_sub(limits::KNOWN);
            keys.drain(..too_many);
            Some([&store.to_le_bytes()[..], keys.as_flattened()].concat())
        });
        is_new
    }

    /// Notes that `store` has lost the object.
    pub(super) fn forget(self, store: u64, ident: &Ident) {
        update(self.board, &known_name(store), |value| {
            let mut keys = keys_of(value, store);
            let before = keys.len();
            keys.retain(|key| *key != key_of(ident));
            (keys.len() < before).then(|| [&store.to_le_bytes()[..], keys.as_flattened()].concat())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared_board::Memory;

    #[test]
    fn what_a_store_has_is_known_until_it_is_lost_or_too_long_ago() {
        let board = Memory::default();
        let known = Known { board: &board };
        let one = [1; 24];
        assert!(known.add(1, &one) && !known.add(1, &one));
        assert!(known.add(2, &one), "another store");
        known.forget(1, &one);
        assert!(known.add(1, &one));
        for number in 0..limits::KNOWN as u64 {
            let mut ident = [9; 24];
            ident[..8].copy_from_slice(&number.to_le_bytes());
            known.add(1, &ident);
        }
        assert!(known.add(1, &one));
        assert!(known.add(2 + limits::STORES, &one), "a store in the place of another");
        assert!(known.add(2, &one));
        assert!(board.sizes().iter().all(|(_, bytes)| *bytes <= 8 * (limits::KNOWN + 1)));
    }
}
