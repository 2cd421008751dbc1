//! The figures of the last minute, in whole microseconds, bits and counts. A ground tells its remotes the same figures.

use serde::{Deserialize, Serialize};

use super::hour::{Crossed, Minute, Today};

/// A median time with the number of times behind it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Timed {
    /// The median, in microseconds.
    pub median_us: u64,
    /// The number of times.
    pub count: u64,
}

/// The clients' way to the box, where it is not the link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientFigures {
    /// The clients with an open connection.
    pub seen: u64,
    /// Those of them whose own network is slow.
    pub slow: u64,
    /// The shortest round trip of the slowest client, in microseconds.
    pub slowest_us: u64,
}

/// The figures of a box. Fields that a later version adds are absent in the report of an earlier one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measured {
    /// The time that the figures cover, in seconds. 0: nothing is measured yet.
    pub(crate) over_s: u64,
    /// The requests of clients, and their connections that pass unread.
    pub requests: u64,
    /// The other ends of connections over the link: clients of an edge, remotes of a ground.
    pub(crate) peers: u64,
    /// The shortest round trip over the link, in microseconds: the median over the other ends.
    pub(crate) rtt_us: Option<u64>,
    /// The median time that packets waited beyond it, in microseconds.
    pub(crate) queue_us: Option<u64>,
    /// The segments with data that this box sent over the link.
    pub(crate) segments: u64,
    /// Those of them that it sent again.
    pub(crate) sent_again: u64,
    /// Bits per second over the link to clients.
    pub(crate) down_bps: u64,
    /// Bits per second from them.
    pub(crate) up_bps: u64,
    /// The time of the resolvers for a query.
    pub(crate) lookups: Option<Timed>,
    /// The time until a connection to an origin stands.
    pub(crate) connects: Option<Timed>,
    /// The time of origins from a request to the first byte of its response, without the connection.
    pub(crate) first_bytes: Option<Timed>,
    /// The clients' own networks.
    pub(crate) clients: ClientFigures,
}

impl Measured {
    /// Returns the time that a resolver or an origin takes itself, without the way there, in microseconds.
    pub(super) fn own_us(&self, times: Timed) -> u64 {
        times.median_us.saturating_sub(self.connects.map_or(0, |connects| connects.median_us))
    }

    /// Returns the figures of a remote with those of its ground, which alone sees what lies behind it. Losses of a ground
    /// with several remotes are those of any of them.
    #[must_use]
    pub(crate) fn with_ground(&self, ground: &Self) -> Self {
        let (segments, sent_again) = if ground.peers <= 1 { (ground.segments, ground.sent_again) } else { (0, 0) };
        let queue_us = if ground.peers <= 1 { self.queue_us.max(ground.queue_us) } else { self.queue_us };
        Self {
            queue_us,
            segments: self.segments.saturating_add(segments),
            sent_again: self.sent_again.saturating_add(sent_again),
            lookups: ground.lookups,
            connects: ground.connects,
            first_bytes: ground.first_bytes,
            ..self.clone()
        }
    }
}

/// The costs in the report of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CostReport {
    /// The figures of the last minute.
    pub(crate) measured: Measured,
    /// The use of the link by minutes. The last one is last.
    pub(crate) hour: Vec<Minute>,
    /// The savings of today.
    pub(crate) today: Today,
    /// The use of the link since the start of the run, for the accounts of groups.
    #[serde(skip)]
    pub(crate) crossed: Crossed,
}
