//! URLs whose responses belong to one client each. Requests for them do not wait for one another.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use object_store::Key;

/// How long a URL is remembered.
const TIME: Duration = Duration::from_mins(1);
/// The most URLs. If they are exceeded, all are forgotten: that costs a wait, and no correctness.
const MOST: usize = 65_536;

/// The URLs.
#[derive(Debug, Default)]
pub(crate) struct Private(Mutex<HashMap<Key, Instant>>);

impl Private {
    pub(crate) fn add(&self, key: Key, now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key, now);
    }

    pub(crate) fn includes(&self, key: Key, now: Instant) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&key).is_some_and(|added| now.saturating_duration_since(*added) < TIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_remembered_for_a_minute() {
        let private = Private::default();
        let (key, now) = (Key::of_url(b"http", b"www.example.org", b"/"), Instant::now());
        assert!(!private.includes(key, now));
        private.add(key, now);
        assert!(private.includes(key, now + TIME / 2) && !private.includes(key, now + TIME));
    }
}
