//! The last pages in the report of a run. A page has a number and no name.

use serde::{Deserialize, Serialize};

/// A page that was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageReport {
    /// Its number since the start of the run, from 1 on.
    pub number: u64,
    /// The result.
    #[serde(flatten)]
    pub load: PageLoad,
}

/// The load of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageLoad {
    /// The result in one word.
    pub outcome: Outcome,
    /// The status. 0 if there was no response.
    pub status: u16,
    /// The time to the first byte of the response from beyond this hop, in milliseconds. None if it came from here.
    pub first_byte_ms: Option<u64>,
    /// The time to the last byte, in milliseconds.
    pub duration_ms: u64,
    /// The URLs that were moved. None if this box did not rewrite the page.
    pub moved: Option<u64>,
    /// The URLs that were left, by reason.
    pub left: Vec<(String, u64)>,
    /// The reason to stop rewriting before the end of the page.
    pub bail_out: Option<String>,
}

/// The outcome of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Rewritten from its beginning to its end.
    Rewritten,
    /// Rewritten up to some point.
    RewrittenInPart,
    /// Delivered as it came. Another box of a pair may have rewritten it.
    PassedOn,
    /// A status of 400 or above, or no response.
    Failed,
}
