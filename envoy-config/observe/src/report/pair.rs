//! The other end of a pair in the report of a run.

use serde::{Deserialize, Serialize};

use crate::measure::Silent;
use crate::report::ProblemRecord;
use crate::why::Measured;

/// The other end of a pair. Empty at an edge, and while nothing is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairReport {
    /// The present silence of the ground.
    pub silence: Option<Silence>,
    /// True at a remote without an established connection to the ground. Envoy counts those that it only tries, too.
    #[serde(default)]
    pub unconnected: bool,
    /// The reason why the last handshake failed, with its cure. None while the other end responds.
    pub handshake: Option<String>,
    /// The report of the ground to a remote.
    #[serde(default)]
    pub ground: GroundReport,
    /// The size of IP packets that vanish on the way to the other end, in bytes. None: none do.
    #[serde(default)]
    pub vanishing: Option<u32>,
}

/// The report of a ground to a remote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroundReport {
    /// Its problems.
    pub problems: Vec<ProblemRecord>,
    /// The time by which its clock is ahead of this one, in seconds. None: by less than a few minutes, or unknown.
    pub clock_ahead_s: Option<i64>,
    /// Its figures of the last minute. None: it is of an earlier version, or does not respond.
    #[serde(default)]
    pub costs: Option<Measured>,
}

/// A ground that has not responded for some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// The part that is silent.
    pub kind: Silent,
    /// Its beginning, in seconds since 1970.
    pub since: u64,
    /// The ground's TCP port.
    #[serde(default)]
    pub port: u16,
}
