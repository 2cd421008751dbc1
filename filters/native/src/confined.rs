//! Filters of one worker, for two threads: the worker's and Envoy's main thread, which runs timers and requests.

#![allow(unsafe_code)]

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A value whose parts count references without atomic numbers (`Rc`), behind a lock.
///
/// A lock alone does not make such a value fit for a second thread, because a part could stay behind on the first
/// one. Here it cannot. Only bytes leave the lock. The filters keep no part of themselves in statics or thread-locals
/// (`filters/README.md`). `worker.rs` takes the host back from the thread before it releases the lock.
#[derive(Debug)]
pub(crate) struct Confined<T>(Mutex<T>);

// SAFETY: all references to the parts are inside the value, by the rule above. So the counts are read and written under
// the lock alone, and dropping the value drops all of them.
unsafe impl<T> Send for Confined<T> {}
// SAFETY: the lock admits one thread at a time, and the line above lets the value go from one to the next.
unsafe impl<T> Sync for Confined<T> {}

impl<T> Confined<T> {
    /// Confines a value.
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits for the value. A panic under the lock leaves it usable: `worker.rs` retires a worker whose filter panicked.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
