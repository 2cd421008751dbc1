//! The slow link.

use std::time::Duration;

use crate::units::{Bytes, Rate};

/// The slow link, as the operator describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The round-trip time without queueing.
    pub rtt: Duration,
    /// The rate towards the clients.
    pub down: Rate,
    /// The rate from the clients.
    pub up: Rate,
    /// The price of bytes.
    pub price: Price,
    /// The largest IP packet that crosses the link whole, in bytes. None: the kernel finds it.
    pub mtu: Option<u32>,
}

impl Link {
    /// The bytes in a full queue. Modems and cells that are slow enough to matter have less ("WWW over GPRS", 2002).
    const QUEUE: Bytes = Bytes(64 << 10);

    /// Returns the time that a packet spends in the full queue of the slower direction. The other end of a busy link may
    /// need this time to respond.
    #[must_use]
    pub fn queueing_delay(&self) -> Duration {
        self.down.min(self.up).time_for(Self::QUEUE.0)
    }
}

/// The price of the link's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Price {
    /// Bytes cost only time.
    Free,
    /// The operator pays for each byte, so bytes count more than processor time.
    Metered,
}
