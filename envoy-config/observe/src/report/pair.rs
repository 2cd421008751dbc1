//! The other end of a pair in the report of a run.

use serde::{Deserialize, Serialize};

use crate::measure::Silent;

/// The other end of a pair. Empty at an edge, and while nothing is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairReport {
    /// The present silence of the ground.
    pub silence: Option<Silence>,
    /// The reason why the last handshake failed, with its cure. None while the other end responds.
    pub handshake: Option<String>,
}

/// A ground that has not responded for some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// The part that is silent.
    pub kind: Silent,
    /// Its beginning, in seconds since 1970.
    pub since: u64,
}
