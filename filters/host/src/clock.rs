//! The proxy's clock that never steps: not when the machine's time is set.

use std::time::Duration;

use crate::error::HostError;
use crate::ffi;

/// Time since a moment that is the same for all workers of the process, usually the machine's start. For durations and
/// deadlines; it says nothing about the date.
pub fn monotonic() -> Result<Duration, HostError> {
    ffi::monotonic_nanoseconds().map(Duration::from_nanos)
}
