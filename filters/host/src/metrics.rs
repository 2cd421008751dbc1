//! Counters. Define each once a configuration, never with foreign text in its name: names live as long as the process.

use crate::error::HostError;
use crate::ffi;

/// The ABI's `counter`.
const COUNTER: u32 = 0;

/// A counter that was defined. Adding to one that was not (by default) does nothing, so that a metric that the host
/// refuses costs only itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counter(Option<u32>);

impl Counter {
    /// Defines the counter `name`, or finds it again.
    pub fn define(name: &str) -> Result<Self, HostError> {
        ffi::define_metric(COUNTER, name).map(|id| Self(Some(id)))
    }

    /// Adds `amount`; nothing for 0.
    pub fn add(self, amount: u64) {
        if let (Some(id), 1..) = (self.0, amount) {
            // A count that is lost is no reason to trouble the stream.
            let _ = ffi::increment_metric(id, i64::try_from(amount).unwrap_or(i64::MAX));
        }
    }
}
