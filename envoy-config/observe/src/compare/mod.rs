//! Compares the connections of clients that pass untouched (`compare`) with those that Longhaul serves.
//!
//! The packet rules of `longhaul host` copy the headers of each connection's first packets to this process
//! ([`PacketLog`](packet_log::PacketLog)). [`Comparison`] turns them into two times per connection, as the client sees them. Both groups are
//! seen at the same place, so a difference comes from Longhaul. Nothing about a client is kept but its times.

mod connections;
mod measurement;
mod packet_log;
mod segment;
mod times;

use std::time::Duration;

use longhaul_config::share::Group;
use serde::{Deserialize, Serialize};

use connections::Comparison;
pub use measurement::{Fault, Measurement};
pub(crate) use times::{Difference, Median};

/// The figures of one group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// The time from a client's SYN to its handshake's end.
    pub set_up: Median,
    /// The time from a client's request to the first bytes of the response. With TLS these bytes are the server's part
    /// of the handshake.
    pub first_bytes: Median,
}

/// Both groups, as a run reports them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// The size of each group, in percent of the clients.
    pub(crate) percent: u8,
    /// The reason why nothing is measured.
    pub(crate) fault: Option<String>,
    /// Clients that pass untouched.
    pub(crate) direct: Figures,
    /// Clients that Longhaul serves.
    pub(crate) accelerated: Figures,
    /// The gain or loss of Longhaul in both times.
    pub(crate) difference: Differences,
}

/// The differences between both groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Differences {
    /// That of [`Figures::set_up`].
    pub set_up: Difference,
    /// That of [`Figures::first_bytes`].
    pub first_bytes: Difference,
}

impl Compared {
    /// Makes the report on a comparison.
    fn of(percent: u8, fault: Option<String>, comparison: &Comparison) -> Self {
        let (direct, accelerated) = (comparison.figures(Group::Direct), comparison.figures(Group::Accelerated));
        let difference = Differences {
            set_up: Difference::between(direct.set_up, accelerated.set_up),
            first_bytes: Difference::between(direct.first_bytes, accelerated.first_bytes),
        };
        Self { percent, fault, direct, accelerated, difference }
    }

    /// Returns true if no connection of either group was seen.
    pub(crate) fn is_empty(&self) -> bool {
        self.direct.set_up.connections() + self.accelerated.set_up.connections() == 0
    }
}

/// Returns whole microseconds.
fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
