//! Objects that the remote keeps, one copy of each for all pages, clients and workers. The object that was used the
//! longest ago goes first.
//!
//! The board's value `shelf` lists the places of objects; `object/N` is the N-th place. A place begins with the name of
//! its object, so an outdated list does no harm.

use crate::digest::Ident;
use crate::limits;
use crate::wire::{Malformed, Reader, put_bytes, put_number};
use shared_board::{Board, update};

const LIST: &str = "shelf";

fn place_name(place: u64) -> String {
    format!("object/{place}")
}

/// A line of the list. The list begins with the least recently used object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    ident: Ident,
    place: u64,
    bytes: u64,
}

fn read(value: &[u8]) -> Result<Vec<Line>, Malformed> {
    let mut reader = Reader(value);
    let mut lines = Vec::new();
    while !reader.is_empty() {
        lines.push(Line { ident: reader.array()?, place: reader.number()?, bytes: reader.number()? });
    }
    Ok(lines)
}

fn write(lines: &[Line]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        out.extend_from_slice(&line.ident);
        put_number(&mut out, line.place);
        put_number(&mut out, line.bytes);
    }
    out
}

/// A kept object: its lasting headers and its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) head: Vec<u8>,
    pub(crate) body: Vec<u8>,
}

/// Keeps an object. Returns false if it could not.
pub(crate) fn put(board: &dyn Board, room: u64, ident: &Ident, head: &[u8], body: &[u8]) -> bool {
    let mut value = ident.to_vec();
    put_bytes(&mut value, head);
    value.extend_from_slice(body);
    let bytes = u64::try_from(value.len()).unwrap_or(u64::MAX);
    if bytes > room {
        return false;
    }
    let (mut place, mut freed) = (0, Vec::new());
    let listed = update(board, LIST, |list| {
        let mut lines = read(list).unwrap_or_default();
        freed.clear();
        lines.retain(|line| {
            line.ident != *ident || {
                freed.push(line.place);
                false
            }
        });
        let mut used: u64 = lines.iter().map(|line| line.bytes).sum();
        while !lines.is_empty() && (used + bytes > room || lines.len() >= limits::SHELF_OBJECTS) {
            let oldest = lines.remove(0);
            used = used.saturating_sub(oldest.bytes);
            freed.push(oldest.place);
        }
        place = freed.pop().unwrap_or_else(|| first_free(&lines));
        lines.push(Line { ident: *ident, place, bytes });
        Some(write(&lines))
    });
    if !listed {
        return false;
    }
    for place in freed {
        board.set(&place_name(place), &[], 0);
    }
    board.set(&place_name(place), &value, 0)
}

/// Returns the lowest place that no line names.
fn first_free(lines: &[Line]) -> u64 {
    let mut taken: Vec<u64> = lines.iter().map(|line| line.place).collect();
    taken.sort_unstable();
    let mut free = 0;
    for place in taken {
        if place == free {
            free += 1;
        }
    }
    free
}

/// Returns the object if it is kept.
pub(crate) fn get(board: &dyn Board, ident: &Ident) -> Option<Kept> {
    let lines = read(&board.get(LIST).0).ok()?;
    let line = lines.iter().find(|line| line.ident == *ident)?;
    let value = board.get(&place_name(line.place)).0;
    let mut reader = Reader(&value);
    if reader.array() != Ok(*ident) {
        return None;
    }
    let head = reader.bytes().ok()?.to_vec();
    Some(Kept { head, body: reader.0.to_vec() })
}

/// Returns true if the object is kept, and counts it as used.
pub(crate) fn touch(board: &dyn Board, ident: &Ident) -> bool {
    let mut kept = false;
    update(board, LIST, |list| {
        let mut lines = read(list).unwrap_or_default();
        let at = lines.iter().position(|line| line.ident == *ident);
        kept = at.is_some();
        let line = lines.remove(at?);
        lines.push(line);
        Some(write(&lines))
    });
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared_board::Memory;

    fn name(number: u8) -> Ident {
        [number; 24]
    }

    #[test]
    fn an_object_comes_back_as_it_was_put() {
        let board = Memory::default();
        assert!(put(&board, 1000, &name(1), b"head", b"body"));
        assert!(put(&board, 1000, &name(2), b"", b""));
        assert_eq!(get(&board, &name(1)), Some(Kept { head: b"head".to_vec(), body: b"body".to_vec() }));
        assert_eq!(get(&board, &name(2)), Some(Kept { head: vec![], body: vec![] }));
        assert_eq!(get(&board, &name(3)), None);
    }

    #[test]
    fn the_longest_unused_goes_first_and_its_place_is_used_again() {
        let board = Memory::default();
        for number in 1..=3 {
            assert!(put(&board, 400, &name(number), b"", &[0; 100]));
        }
        assert!(touch(&board, &name(1)));
        assert!(put(&board, 400, &name(4), b"", &[0; 100]));
        assert!(get(&board, &name(2)).is_none() && !touch(&board, &name(2)));
        assert!([1, 3, 4].iter().all(|&number| get(&board, &name(number)).is_some()));
        for number in 5..100 {
            assert!(put(&board, 400, &name(number), b"", &[0; 100]));
        }
        let sizes = board.sizes();
        assert!(sizes.len() <= 5, "{sizes:?}");
        assert!(sizes.iter().map(|(_, bytes)| bytes).sum::<usize>() < 600);
    }

    #[test]
    fn an_object_larger_than_the_shelf_is_not_stored_and_displaces_nothing() {
        let board = Memory::default();
        assert!(put(&board, 200, &name(1), b"", &[0; 100]));
        assert!(!put(&board, 200, &name(2), b"", &[0; 200]));
        assert!(get(&board, &name(1)).is_some());
    }

    #[test]
    fn a_place_that_holds_something_else_by_now_is_not_believed() {
        let board = Memory::default();
        assert!(put(&board, 1000, &name(1), b"", b"one"));
        board.set("object/0", b"garbage", 0);
        assert_eq!(get(&board, &name(1)), None);
        board.set("shelf", b"garbage", 0);
        assert_eq!(get(&board, &name(1)), None);
        assert!(put(&board, 1000, &name(1), b"", b"one"));
        assert!(get(&board, &name(1)).is_some());
    }
}
