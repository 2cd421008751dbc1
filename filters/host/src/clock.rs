//! The proxy's monotonic clock. It does not step when somebody sets the machine's time.

use std::time::Duration;

use crate::calls;
use crate::error::HostError;

/// Returns the time since a moment that all workers of the process share, usually the machine's start. Use it for
/// durations and deadlines; it does not give the date.
pub fn monotonic() -> Result<Duration, HostError> {
    calls::monotonic()
}
