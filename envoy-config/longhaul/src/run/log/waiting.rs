//! Lines that Envoy writes for this program alone, between the thread that reads children and the run.

use std::sync::{Arc, Mutex, PoisonError};

use longhaul_observe::bill::Billed;
use longhaul_render::HeardReport;

use super::pages::RecentPages;

/// The lines that may wait. The run takes them ten times a second.
const MOST_WAITING: usize = 100_000;

/// The lines that the run hears from its Envoys.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Heard {
    /// The last pages.
    pub(in super::super) pages: RecentPages,
    /// The reports of this ground's remotes.
    pub(in super::super) reports: Waiting<HeardReport>,
    /// The bytes of clients at this remote.
    pub(in super::super) billed: Waiting<Billed>,
}

/// Lines that Envoy wrote and the run has not read yet.
#[derive(Debug)]
pub(in super::super) struct Waiting<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Waiting<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Waiting<T> {
    /// Adds one. Drops it if too many wait.
    pub(super) fn add(&self, one: T) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < MOST_WAITING {
            waiting.push(one);
        }
    }

    /// Returns all that wait, the first one first.
    pub(in super::super) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
