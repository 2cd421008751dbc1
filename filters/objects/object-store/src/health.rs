//! The state of the disk: it takes writes, or a write has failed a moment ago.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the store refuses writes after one failed.
pub const PAUSE: Duration = Duration::from_secs(10);

/// Counts failed writes, and refuses new ones for a while after each. So a broken disk costs no time for each request.
#[derive(Debug, Default)]
pub(crate) struct Health {
    errors: AtomicU64,
    failed_at: Mutex<Option<Instant>>,
}

impl Health {
    /// Fails if a write failed less than [`PAUSE`] before `now`.
    pub(crate) fn check(&self, now: Instant) -> io::Result<()> {
        let failed_at = *self.failed_at.lock().unwrap_or_else(PoisonError::into_inner);
        match failed_at {
            Some(at) if now.saturating_duration_since(at) < PAUSE => {
                Err(io::Error::new(io::ErrorKind::ResourceBusy, "a write failed seconds ago: no write is tried"))
            }
            _ => Ok(()),
        }
    }

    /// Notes the failure of a write.
    pub(crate) fn fail(&self, now: Instant) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        *self.failed_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Notes `result` if it is a failure, and passes it on.
    pub(crate) fn watch<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.is_err() {
            self.fail(Instant::now());
        }
        result
    }

    /// Returns how many writes failed since the start.
    pub(crate) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_refused_until_the_pause_is_over() {
        let health = Health::default();
        let start = Instant::now();
        assert!(health.check(start).is_ok());
        health.fail(start);
        assert!(health.check(start).is_err());
        assert!(health.check(start + PAUSE / 2).is_err());
        assert!(health.check(start + PAUSE).is_ok());
        assert_eq!(health.errors(), 1);
    }
}
