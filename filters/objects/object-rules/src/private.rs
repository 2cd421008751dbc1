//! URLs whose responses are not stored. Requests for them do not wait for one another, and may bypass the store.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::PastFor;

/// How long a URL is remembered.
const TIME: Duration = Duration::from_mins(1);
/// The most URLs. If they are exceeded, all are forgotten: that costs time, and no correctness.
const MOST: usize = 65_536;

/// The URLs, in memory. Each is known by a `K`, such as a hash. A collision costs speed, and no correctness.
#[derive(Debug)]
pub struct Private<K>(Mutex<HashMap<K, (Instant, PastFor)>>);

impl<K> Default for Private<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Copy + Eq + Hash> Private<K> {
    /// Remembers for a minute that responses to these requests for a URL are not stored.
    pub fn add(&self, key: K, which: PastFor, now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key, (now, which));
    }

    /// Returns true if the responses to such requests for a URL were not stored lately.
    pub fn includes(&self, key: K, has_cookie: bool, now: Instant) -> bool {
        self.of(key, now).is_some_and(|which| which.includes(has_cookie))
    }

    /// Returns the requests for a URL whose responses are not stored. None if nothing is known.
    pub fn of(&self, key: K, now: Instant) -> Option<PastFor> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, which) = known.get(&key).filter(|(added, _)| now.saturating_duration_since(*added) < TIME)?;
        Some(*which)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_remembered_for_a_minute() {
        let private = Private::default();
        let (key, now) = (7, Instant::now());
        assert_eq!(private.of(key, now), None);
        private.add(key, PastFor::WithCookie, now);
        assert_eq!(private.of(key, now + TIME / 2), Some(PastFor::WithCookie));
        assert_eq!(private.of(key, now + TIME), None);
        private.add(key, PastFor::All, now);
        assert_eq!(private.of(key, now), Some(PastFor::All));
    }
}
