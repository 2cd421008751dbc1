//! The bytes that a queue holds, and the most that it may hold.

use serde::Serialize;

/// Levels of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct QueueLevels {
    /// Bytes waiting or in transmission.
    pub now_bytes: usize,
    /// The most bytes since counting began.
    pub highest_bytes: usize,
    /// The limit. A packet that would exceed it is dropped.
    pub limit_bytes: usize,
}

impl QueueLevels {
    /// Returns the levels of an empty queue that holds at most `limit_bytes`, including the packet in transmission.
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self { now_bytes: 0, highest_bytes: 0, limit_bytes }
    }

    /// Counts the bytes of an item that leaves.
    pub(super) fn leave(&mut self, length_bytes: usize) {
        self.now_bytes = self.now_bytes.saturating_sub(length_bytes);
    }

    /// Raises the high-water mark to the current level.
    pub(super) fn mark(&mut self) {
        self.highest_bytes = self.highest_bytes.max(self.now_bytes);
    }

    /// Restarts the high-water mark at the current level.
    pub(super) fn forget_highest(&mut self) {
        self.highest_bytes = self.now_bytes;
    }
}
