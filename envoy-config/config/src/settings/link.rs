//! The slow link.

use std::time::Duration;

use crate::device_name::DeviceName;
use crate::units::{Bytes, Rate};

/// The slow link, as the operator describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// The part of the link that Longhaul sends at most.
    pub fill: Fill,
    /// The network interface that leads to the link and is shaped. None: `off`.
    pub device: Option<DeviceName>,
}

impl Link {
    /// Returns the link of a file that states these values alone, free of charge.
    #[must_use]
    pub const fn of(rtt: Duration, down: Rate, up: Rate) -> Self {
        Self { rtt, down, up, price: Price::Free, mtu: None, fill: Fill::Off, device: None }
    }

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

/// The part of the link's rate that a pair sends at most, with all headers. Each client has an equal share of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// The part that leaves the link's own queue empty.
    Auto,
    /// As much as TCP finds, without shares.
    Off,
    /// This part, in percent.
    Percent(u8),
}

impl Fill {
    /// The smallest part in percent.
    pub(crate) const LEAST: u8 = 25;
    /// The largest part in percent.
    pub(crate) const MOST: u8 = 100;

    /// Parses a part such as `90%`. Returns None for anything else and beyond the bounds.
    pub(crate) fn percent(text: &str) -> Option<Self> {
        let percent = text.strip_suffix('%')?.trim_end().parse().ok()?;
        (Self::LEAST..=Self::MOST).contains(&percent).then_some(Self::Percent(percent))
    }
}
