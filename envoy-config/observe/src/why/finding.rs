//! The explanation of a slow box: its parts, and the way of requests that it is about.

use serde::Serialize;

use super::measured::Measured;

/// A part of a request's way that takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cause {
    /// The round trip of the link is longer than `link.rtt`.
    RoundTrip,
    /// The link loses packets.
    Loss,
    /// Packets wait in front of the link.
    Queue,
    /// The rate of the link is used up.
    Rate,
    /// The resolvers respond slowly.
    Resolver,
    /// The ground, or the box alone, is far from the origins.
    Place,
    /// Origins take long for the first byte.
    Origin,
    /// A client's own network is slow.
    ClientNetwork,
}

impl Cause {
    /// Every cause, in the order of a request's way.
    pub(crate) const ALL: [Self; 8] = [
        Self::ClientNetwork,
        Self::RoundTrip,
        Self::Loss,
        Self::Queue,
        Self::Rate,
        Self::Resolver,
        Self::Place,
        Self::Origin,
    ];
}

/// The way of requests as it is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    /// True for a box alone, whose clients are beyond the link.
    pub is_alone: bool,
    /// `link.rtt`, in microseconds.
    pub rtt_us: u64,
    /// `link.down`, in bits per second.
    pub down_bps: u64,
    /// `link.up`, in bits per second.
    pub up_bps: u64,
}

impl Way {
    /// Returns the round trips of the link that a new request takes. At a pair, one: the remote itself responds to a client's
    /// connection. At an edge, three: query, connection and request.
    pub(super) fn round_trips(&self) -> u64 {
        if self.is_alone { 3 } else { 1 }
    }

    /// Returns the use of the link's rate in percent, in the direction that is used more.
    pub(super) fn use_percent(&self, measured: &Measured) -> u64 {
        let of = |used: u64, rate: u64| used.saturating_mul(100).checked_div(rate).unwrap_or(0);
        of(measured.down_bps, self.down_bps).max(of(measured.up_bps, self.up_bps))
    }
}

/// A part of a new request's time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Part {
    /// The part.
    pub cause: Cause,
    /// Its name in a sentence.
    pub name: &'static str,
    /// True if it takes more than it should.
    pub is_cause: bool,
    /// Its time of a new request, in microseconds.
    pub time_us: u64,
    /// The same in percent of all parts.
    pub percent: u64,
    /// The figures that show it.
    pub evidence: String,
    /// The advice to an operator.
    pub advice: &'static str,
    /// The reason for the limit beyond which it is a cause.
    pub limit: &'static str,
}

/// The result in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// Some parts take more than they should.
    Slow,
    /// No part does.
    Healthy,
    /// Nobody has used the box in the last minute, and nothing is wrong with the link.
    Idle,
}

/// The explanation of where the time of a new request goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Why {
    /// The result in a word.
    pub verdict: Verdict,
    /// The same in a sentence.
    pub sentence: String,
    /// The parts of a new request's time, the longest first.
    pub parts: Vec<Part>,
    /// The figures behind it.
    pub measured: Measured,
}

impl Why {
    /// Returns the parts that take more than they should, the longest first.
    pub(crate) fn causes(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| part.is_cause)
    }
}
