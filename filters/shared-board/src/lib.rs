//! Values that all workers of a proxy see, as policy crates use them.
//!
//! A client's connections land on any worker, and each worker has a filter of its own. The others find what
//! one of them learns on a [`Board`]. `filter_host::shared::ProxyBoard` is the board of the proxy; [`Memory`] is one for tests.
//!
//! The laws of a board:
//! - **Names are bounded.** The proxy keeps a name for as long as its process lives, even when the value is empty. So a
//!   policy crate takes its names from a set whose size it fixes beforehand, and each value has a named limit.
//!   [`Buckets`] is a table that does so.
//! - **A version counts.** It starts at 1 and changes with every [`Board::set`]. Version 0 means that there is no value.
//! - **A lost race is run again.** [`update`] reads and changes the value again, [`TRIES`] times at most. Then it changes
//!   nothing and returns false.
//! - **The first draw wins.** [`settled`] gives the same bytes to every worker, in whatever order they ask.
//! - **A board may refuse.** Its values save time, and no caller needs them.

mod buckets;
mod memory;

pub use buckets::Buckets;
pub use memory::Memory;

/// Values by name, the same for all workers of a proxy.
pub trait Board {
    /// The value of `name` and its version; empty and 0 where there is none.
    fn get(&self, name: &str) -> (Vec<u8>, u32);

    /// Sets `name` if its version is still `version`. Version 0 always sets; [`NEW`] sets only where there is no value.
    /// False if another worker was faster, or if the board refuses.
    fn set(&self, name: &str, value: &[u8], version: u32) -> bool;
}

impl<B: Board + ?Sized> Board for &B {
    fn get(&self, name: &str) -> (Vec<u8>, u32) {
        (**self).get(name)
    }

    fn set(&self, name: &str, value: &[u8], version: u32) -> bool {
        (**self).set(name, value, version)
    }
}

/// A version that no value has: versions count up from 1.
pub const NEW: u32 = u32::MAX;

/// How often [`update`] tries before it gives up.
pub const TRIES: usize = 16;

/// Changes the value of `name` to what `change` makes of it; `None` leaves it. `change` runs again, on the value that is
/// there now, whenever another worker was faster. False if it never succeeded.
pub fn update(board: &dyn Board, name: &str, mut change: impl FnMut(&[u8]) -> Option<Vec<u8>>) -> bool {
    for _ in 0..TRIES {
        let (value, version) = board.get(name);
        match change(&value) {
            None => return true,
            Some(changed) if board.set(name, &changed, if version == 0 { NEW } else { version }) => return true,
            Some(_) => {}
        }
    }
    false
}

/// The value of `name`, which becomes `drawn` if there is none. Every worker gets the same one. A board that refuses, or
/// holds a value of another length, leaves each worker with its own draw.
pub fn settled<const N: usize>(board: &dyn Board, name: &str, drawn: [u8; N]) -> [u8; N] {
    board.set(name, &drawn, NEW);
    board.get(name).0.try_into().unwrap_or(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_came_too_late_is_made_again_on_what_is_there() {
        let board = Memory::default();
        assert!(board.set("a", b"1", 0));
        let mut tries = 0;
        assert!(update(&board, "a", |value| {
            tries += 1;
            if tries == 1 {
                board.set("a", b"2", 0);
            }
            Some([value, b"!"].concat())
        }));
        assert_eq!((board.get("a").0, tries), (b"2!".to_vec(), 2));
        assert!(update(&board, "a", |_| None));
        assert_eq!(board.get("a").0, b"2!");
    }

    #[test]
    fn a_change_that_always_comes_too_late_is_given_up() {
        let board = Memory::default();
        let mut tries = 0;
        assert!(!update(&board, "a", |_| {
            tries += 1;
            board.set("a", b"faster", 0);
            Some(b"mine".to_vec())
        }));
        assert_eq!((board.get("a").0, tries), (b"faster".to_vec(), TRIES));
    }

    #[test]
    fn the_first_of_two_workers_that_find_no_value_wins() {
        let board = Memory::default();
        assert!(update(&board, "a", |_| {
            board.set("a", b"faster", NEW);
            Some(b"mine".to_vec())
        }));
        assert_eq!(board.get("a"), (b"mine".to_vec(), 2));
        assert!(!board.set("a", b"second", NEW));
    }

    #[test]
    fn all_workers_settle_on_the_draw_of_the_first() {
        let board = Memory::default();
        assert_eq!(settled(&board, "store", *b"worker 1"), *b"worker 1");
        assert_eq!(settled(&board, "store", *b"worker 2"), *b"worker 1");
        assert_eq!(settled(&board, "store", *b"longer than that"), *b"longer than that");
    }
}
