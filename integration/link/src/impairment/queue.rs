//! The buffer in front of the transmitter: first in, first out, drop-tail, with a limit in bytes like the buffer of a
//! modem.

use std::collections::VecDeque;

/// A drop-tail queue of items with a length in bytes.
#[derive(Clone, Debug)]
pub struct DropTail<T> {
    waiting: VecDeque<(usize, T)>,
    held_bytes: usize,
    limit_bytes: usize,
    highest_bytes: usize,
}

impl<T> DropTail<T> {
    /// Returns an empty queue that holds at most `limit_bytes`, including the packet in transmission.
    pub fn new(limit_bytes: usize) -> Self {
        Self { waiting: VecDeque::new(), held_bytes: 0, limit_bytes, highest_bytes: 0 }
    }

    /// Appends an item, or returns it if it does not fit.
    pub fn push(&mut self, length_bytes: usize, item: T) -> Result<(), T> {
        let would_hold = self.held_bytes.saturating_add(length_bytes);
        if would_hold > self.limit_bytes {
            return Err(item);
        }
        self.held_bytes = would_hold;
        self.highest_bytes = self.highest_bytes.max(would_hold);
        self.waiting.push_back((length_bytes, item));
        Ok(())
    }

    /// Removes the oldest item and returns it.
    pub fn pop(&mut self) -> Option<T> {
        let (length_bytes, item) = self.waiting.pop_front()?;
        self.held_bytes = self.held_bytes.saturating_sub(length_bytes);
        Some(item)
    }

    /// Returns the length in bytes of the oldest item.
    pub fn head_bytes(&self) -> Option<usize> {
        self.waiting.front().map(|(length_bytes, _)| *length_bytes)
    }

    /// Returns the bytes in the queue.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Returns the limit in bytes.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Returns the most bytes held since the start or since [`Self::forget_highest`].
    pub fn highest_bytes(&self) -> usize {
        self.highest_bytes
    }

    /// Restarts the high-water mark at the current level.
    pub fn forget_highest(&mut self) {
        self.highest_bytes = self.held_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_fit_are_queued_in_order_and_others_are_given_back() {
        let mut queue = DropTail::new(3000);
        assert_eq!(queue.push(1500, "one"), Ok(()));
        assert_eq!(queue.push(1500, "two"), Ok(()));
        assert_eq!(queue.push(1, "three"), Err("three"));
        assert_eq!(queue.pop(), Some("one"));
        assert_eq!(queue.push(1500, "four"), Ok(()));
        assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some("two"), Some("four"), None));
        assert_eq!(queue.held_bytes(), 0);
    }

    #[test]
    fn a_small_packet_still_fits_where_a_large_one_did_not() {
        let mut queue = DropTail::new(2000);
        assert_eq!(queue.push(1500, ()), Ok(()));
        assert_eq!(queue.push(1500, ()), Err(()));
        assert_eq!(queue.push(40, ()), Ok(()));
        assert_eq!(queue.held_bytes(), 1540);
    }

    #[test]
    fn the_highest_level_is_remembered_until_it_is_forgotten() {
        let mut queue = DropTail::new(100);
        queue.push(80, ()).unwrap();
        queue.pop();
        assert_eq!(queue.highest_bytes(), 80);
        queue.forget_highest();
        assert_eq!(queue.highest_bytes(), 0);
    }
}
