//! URLs whose responses the cache did not store lately. Requests for them bypass the program that caches objects.

use filter_host::HostError;
use filter_host::headers::{self, Map};
use object_config::{OUTCOME, PAST, PRIVATE};
use object_rules::{Outcome, PastFor, Private};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;
use url_rewriting::headers::Fields;
use url_rewriting::headers::request::Visit;

/// The URLs that a worker knows.
#[derive(Debug, Default)]
pub(crate) struct Bypass(Private<u64>);

impl Bypass {
    /// Marks a request that bypasses the program. Returns true if it does.
    pub(crate) fn request(&self, visit: &Visit) -> Result<bool, HostError> {
        let bypasses = self.0.includes(hash(visit), visit.bears_cookie, Instant::now());
        if bypasses {
            headers::set(Map::Request, PAST, b"1")?;
        }
        Ok(bypasses)
    }

    /// Learns from the program that it does not store the response. Marks the response to a request that `bypassed` it.
    pub(crate) fn response(&self, visit: &Visit, fields: &Fields<'_>, bypassed: bool) -> Result<(), HostError> {
        if bypassed {
            return headers::set(Map::Response, OUTCOME, Outcome::Past.as_str().as_bytes());
        }
        if let Some(which) = fields.get(PRIVATE).and_then(PastFor::read) {
            self.0.add(hash(visit), which, Instant::now());
        }
        Ok(())
    }
}

fn hash(visit: &Visit) -> u64 {
    let mut hasher = DefaultHasher::new();
    (visit.scheme.as_str(), &visit.authority, &visit.path).hash(&mut hasher);
    hasher.finish()
}
