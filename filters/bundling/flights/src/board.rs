//! What all workers of the near end see: values by name, each changed only by who has seen it last.
//!
//! A browser's connections land on any worker, and its requests must find what another worker has received. The proxy keeps
//! such values for the whole process; names live as long as it does, so there are only so many.

/// The proxy's values.
pub trait Board {
    /// The value of `name` and its version; empty and 0 where there is none.
    fn get(&self, name: &str) -> (Vec<u8>, u32);
    /// Sets it if its version is still `version`; 0 always sets, [`NEW`] only where there is none. False if somebody else was
    /// faster, or it cannot be set.
    fn set(&self, name: &str, value: &[u8], version: u32) -> bool;
}

/// A version that no value has: the proxy counts them up from 1.
pub const NEW: u32 = u32::MAX;

/// How often a change that others were faster than is tried again.
const TRIES: usize = 16;

/// Changes a value by what `change` makes of it; none leaves it. False if that did not succeed.
pub(crate) fn update(board: &dyn Board, name: &str, mut change: impl FnMut(&[u8]) -> Option<Vec<u8>>) -> bool {
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

/// The value of `name`, which is `drawn` if there was none. All workers get the same, however many draw at one time.
pub fn settled(board: &dyn Board, name: &str, drawn: [u8; 8]) -> [u8; 8] {
    board.set(name, &drawn, NEW);
    board.get(name).0.try_into().unwrap_or(drawn)
}

/// A board in memory, for tests of both ends.
#[cfg(test)]
pub(crate) mod memory {
    use super::Board;
    use std::cell::RefCell;
    use std::collections::HashMap;

    #[derive(Debug, Default)]
    pub(crate) struct Memory(pub(crate) RefCell<HashMap<String, (Vec<u8>, u32)>>);

    impl Board for Memory {
        fn get(&self, name: &str) -> (Vec<u8>, u32) {
            self.0.borrow().get(name).cloned().unwrap_or_default()
        }

        fn set(&self, name: &str, value: &[u8], version: u32) -> bool {
            let mut values = self.0.borrow_mut();
            let entry = values.entry(name.to_owned()).or_default();
            let current = version == 0 || entry.1 == 0 || version == entry.1;
            if current {
                *entry = (value.to_vec(), entry.1 + 1);
            }
            current
        }
    }
}

#[cfg(test)]
mod tests {
    use super::memory::Memory;
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
    fn two_store_names_in_one_process_when_workers_race_at_start() {
        let board = Memory::default();
        // Neither worker has found a name; both have drawn one.
        assert_eq!(settled(&board, "store", *b"worker 1"), *b"worker 1");
        assert_eq!(settled(&board, "store", *b"worker 2"), *b"worker 1");
        assert!(update(&board, "b", |_| {
            board.set("b", b"faster", NEW);
            Some(b"mine".to_vec())
        }));
        assert!(!board.set("b", b"second", NEW));
    }
}
