//! State that all streams of a worker share.

use std::sync::Arc;

use crate::counters::Counters;
use crate::shelf::Shelf;

/// The filter of one worker.
#[derive(Debug)]
pub struct Worker {
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) counters: Counters,
}
