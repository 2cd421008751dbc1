//! The buffer in front of the transmitter: first in, first out, drop-tail, with a limit in bytes like the buffer of a
//! modem.

use std::collections::VecDeque;

use super::levels::QueueLevels;

/// A drop-tail queue of items with a length in bytes.
#[derive(Clone, Debug)]
pub struct DropTail<T> {
    waiting: VecDeque<(usize, T)>,
    levels: QueueLevels,
}

impl<T> DropTail<T> {
    /// Returns an empty queue that holds at most `limit_bytes`, including the packet in transmission.
    pub fn new(limit_bytes: usize) -> Self {
        Self { waiting: VecDeque::new(), levels: QueueLevels::new(limit_bytes) }
    }

    /// Appends an item, or returns it if it does not fit.
    pub fn push(&mut self, length_bytes: usize, item: T) -> Result<(), T> {
        let would_hold = self.levels.now_bytes.saturating_add(length_bytes);
        if would_hold > self.levels.limit_bytes {
            return Err(item);
        }
        self.levels.now_bytes = would_hold;
        self.levels.mark();
        self.waiting.push_back((length_bytes, item));
        Ok(())
    }

    /// Removes the oldest item and returns it.
    pub fn pop(&mut self) -> Option<T> {
        let (length_bytes, item) = self.waiting.pop_front()?;
        self.levels.leave(length_bytes);
        Some(item)
    }

    /// Returns the length in bytes of the oldest item.
    pub fn head_bytes(&self) -> Option<usize> {
        self.waiting.front().map(|(length_bytes, _)| *length_bytes)
    }

    /// Returns the bytes in the queue, and the most since the start or since [`Self::forget_highest`].
    pub fn levels(&self) -> QueueLevels {
        self.levels
    }

    /// Restarts the high-water mark at the current level.
    pub fn forget_highest(&mut self) {
        self.levels.forget_highest();
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
        assert_eq!(queue.levels().now_bytes, 0);
    }

    #[test]
    fn a_small_packet_still_fits_where_a_large_one_did_not() {
        let mut queue = DropTail::new(2000);
        assert_eq!(queue.push(1500, ()), Ok(()));
        assert_eq!(queue.push(1500, ()), Err(()));
        assert_eq!(queue.push(40, ()), Ok(()));
        assert_eq!(queue.levels().now_bytes, 1540);
    }

    #[test]
    fn the_highest_level_is_remembered_until_it_is_forgotten() {
        let mut queue = DropTail::new(100);
        queue.push(80, ()).unwrap();
        queue.pop();
        assert_eq!(queue.levels().highest_bytes, 80);
        queue.forget_highest();
        assert_eq!(queue.levels().highest_bytes, 0);
    }
}
