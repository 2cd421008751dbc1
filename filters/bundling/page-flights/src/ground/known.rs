//! The objects that the ground believes to be at remotes, in their memory or in their cache. This memory is bounded, and forgetting costs only bytes.

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

/// The index of the remotes whose objects are known: [`Place`]s, the one that was used the longest ago first.
const INDEX: &str = "known";

/// A remote in the index: its name in 8 bytes, and the number of its value on the board in 2.
type Place = [u8; 10];

fn known_name(number: u16) -> String {
    format!("known/{number}")
}

fn place(store: u64, number: u16) -> Place {
    let mut place = Place::default();
    for (byte, from) in place.iter_mut().zip(store.to_le_bytes().into_iter().chain(number.to_le_bytes())) {
        *byte = from;
    }
    place
}

fn is_of(place: &Place, store: u64) -> bool {
    place.first_chunk() == Some(&store.to_le_bytes())
}

fn number_of(place: &Place) -> u16 {
    place.last_chunk().copied().map_or(0, u16::from_le_bytes)
}

/// Returns the number of the store's value. A new store gets a free one, or that of the store that was used the longest
/// ago. A store in the older half of a full index moves to its end, so that the index seldom changes.
fn number(board: &dyn Board, store: u64) -> u16 {
    let mut number = 0;
    update(board, INDEX, |value| {
        let mut places: Vec<Place> = value.as_chunks().0.to_vec();
        if let Some(at) = places.iter().position(|place| is_of(place, store)) {
            number = places.get(at).map_or(0, number_of);
            if at >= limits::STORES / 2 || places.len() < limits::STORES {
                return None;
            }
            places.remove(at);
        } else if places.len() < limits::STORES {
            number = u16::try_from(places.len()).unwrap_or(u16::MAX);
        } else {
            number = number_of(&places.remove(0));
        }
        places.push(place(store, number));
        Some(places.as_flattened().to_vec())
    });
    number
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
        update(self.board, &known_name(number(self.board, store)), |value| {
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

    /// Returns true if `store` has the object.
    pub(super) fn has(self, store: u64, ident: &Ident) -> bool {
        let value = self.board.get(&known_name(number(self.board, store))).0;
        keys_of(&value, store).contains(&key_of(ident))
    }

    /// Notes that `store` has lost the object.
    pub(super) fn forget(self, store: u64, ident: &Ident) {
        update(self.board, &known_name(number(self.board, store)), |value| {
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
    fn objects_of_a_store_are_known_until_they_are_lost_or_too_old() {
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
        assert!(board.sizes().iter().all(|(_, bytes)| *bytes <= 8 * (limits::KNOWN + 1)));
    }

    #[test]
    fn every_remote_of_a_fleet_is_remembered_and_beyond_that_the_one_not_seen_for_longest_is_forgotten() {
        let board = Memory::default();
        let known = Known { board: &board };
        // Names of remotes are random numbers.
        let store = |number: usize| (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let objects: Vec<Ident> = (0..5).map(|object| [object; 24]).collect();
        let sent = |number: usize| objects.iter().filter(|object| known.add(store(number), object)).count();
        assert_eq!((0..limits::STORES).map(sent).sum::<usize>(), limits::STORES * objects.len());
        assert_eq!((0..limits::STORES).map(sent).sum::<usize>(), 0, "nothing crosses the link twice");
        // The first one is in use, and so another one is forgotten for a new one.
        assert_eq!((sent(0), sent(limits::STORES)), (0, objects.len()));
        assert_eq!(sent(0), 0);
        assert_eq!(sent(1), objects.len());
        assert_eq!(board.sizes().len(), limits::STORES + 1);
        let bytes: usize = board.sizes().iter().map(|(_, bytes)| bytes).sum();
        assert!(bytes <= limits::KNOWN_BYTES, "{bytes}");
    }
}
