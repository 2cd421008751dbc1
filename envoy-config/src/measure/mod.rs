//! Measures the link from the kernel's figures of TCP connections that cross it. It sends nothing.
//!
//! The kernel keeps the minimum round-trip time and the delivery rate of each connection (`tcp_info` in `linux/tcp.h`).
//! [`kernel`] reads them. [`watched`] chooses the connections that cross the link. [`estimate`] is pure arithmetic.

mod estimate;
mod kernel;
mod watched;

pub use estimate::{Estimate, Measured, Samples, Suggestion, suggest};
pub use kernel::{Connection, ConnectionId, Kernel};
pub use watched::Watched;
