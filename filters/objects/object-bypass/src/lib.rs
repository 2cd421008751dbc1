//! Requests that bypass `longhaul-objects`, because responses for their URLs were not stored lately. Each filter in front of the
//! program uses it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use filter_host::headers::{self, Map};
use filter_host::{HostError, clock};
use object_config::{OUTCOME, PAST};
use object_rules::{Outcome, PastFor, Private};

/// The URLs that a filter knows, each by a `K`.
#[derive(Debug)]
pub struct Bypass<K> {
    private: Private<K>,
    /// The moment at which the proxy's clock began. Only differences count.
    began: Instant,
}

impl<K> Default for Bypass<K> {
    fn default() -> Self {
        Self { private: Private::default(), began: Instant::now() }
    }
}

/// The way of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way<K> {
    /// It may reach the program. The response says whether the URL is to be remembered.
    Through(K),
    /// It bypasses the program.
    Past,
}

impl<K: Copy + Eq + Hash> Bypass<K> {
    /// Marks the current request if it bypasses the program.
    ///
    /// # Errors
    /// The host's, if it does not mark the request.
    pub fn request(&self, key: K, has_cookie: bool) -> Result<Way<K>, HostError> {
        if !self.private.includes(key, has_cookie, self.now()) {
            return Ok(Way::Through(key));
        }
        headers::set(Map::Request, PAST, b"1")?;
        Ok(Way::Past)
    }

    fn now(&self) -> Instant {
        self.began.checked_add(clock::monotonic().unwrap_or_default()).unwrap_or(self.began)
    }

    /// Learns from the program that it does not store the response: `private` is the response's field
    /// [`PRIVATE`](object_config::PRIVATE). Marks the response to a request that bypassed the program.
    ///
    /// # Errors
    /// The host's, if it does not mark the response.
    pub fn response(&self, way: Way<K>, private: Option<&[u8]>) -> Result<(), HostError> {
        match (way, private.and_then(PastFor::read)) {
            (Way::Past, _) => headers::set(Map::Response, OUTCOME, Outcome::Past.as_str().as_bytes()),
            (Way::Through(key), Some(which)) => {
                self.private.add(key, which, self.now());
                Ok(())
            }
            (Way::Through(_), None) => Ok(()),
        }
    }
}

/// Returns the key of a URL in one process.
pub fn key(scheme: &[u8], authority: &[u8], path: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (scheme, authority, path).hash(&mut hasher);
    hasher.finish()
}
