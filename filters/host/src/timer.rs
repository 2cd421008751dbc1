//! The root context's timer: one period for the VM. A filter starts it when there is work, and stops it afterwards.

use std::time::Duration;

use crate::calls;
use crate::error::HostError;

/// Calls the root context's `on_tick` every `period` from now on, rounded up to whole milliseconds.
pub fn start(period: Duration) -> Result<(), HostError> {
    let millis = period.as_nanos().div_ceil(1_000_000).max(1);
    calls::set_tick_period(u32::try_from(millis).unwrap_or(u32::MAX))
}

/// Stops the ticks.
pub fn stop() -> Result<(), HostError> {
    calls::set_tick_period(0)
}
