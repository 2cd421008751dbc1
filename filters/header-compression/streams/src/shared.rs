//! State that all streams of a worker share.

use crate::counters::Counters;
use header_compression_config::ClientKey;
use std::cell::RefCell;

/// State that all streams of a worker share.
#[derive(Debug)]
pub(crate) struct Shared<End> {
    /// Borrowed only during one call, so it is never borrowed twice.
    pub(crate) end: RefCell<End>,
    pub(crate) counters: Counters,
    pub(crate) client: ClientKey,
}
