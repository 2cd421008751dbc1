//! The last pages in the report of a run. A page has a number and no name.

use serde::{Deserialize, Serialize};

use crate::access_log::counts;

/// Envoy's word for a value that does not exist.
const NONE: &str = "-";

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
    outcome: Outcome,
    /// The status. 0 if there was no response.
    status: u16,
    /// The time to the first byte of the response from beyond this hop, in milliseconds. None if it came from here.
    first_byte_ms: Option<u64>,
    /// The time to the last byte, in milliseconds.
    duration_ms: u64,
    /// The URLs that were moved. None if this box did not rewrite the page.
    moved: Option<u64>,
    /// The URLs that were left, by reason.
    pub(crate) left: Vec<(String, u64)>,
    /// The reason to stop rewriting before the end of the page.
    pub(crate) bail_out: Option<String>,
}

impl PageLoad {
    /// Parses `STATUS FIRST_BYTE DURATION MOVED BAIL_OUT LEFT`.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.trim_start().splitn(6, ' ');
        let mut word = || words.next();
        let known = |text: &str| (text != NONE).then(|| text.to_owned());
        let status: u16 = word()?.parse().ok()?;
        let first_byte_ms = word()?.parse().ok();
        let duration_ms = word()?.parse().ok()?;
        let moved: Option<u64> = word()?.parse().ok();
        let bail_out = known(word()?);
        let left = counts(word()?);
        let outcome = match (status, moved, &bail_out) {
            (0 | 400.., _, _) => Outcome::Failed,
            (_, None, _) => Outcome::PassedOn,
            (_, Some(_), Some(_)) => Outcome::RewrittenInPart,
            (_, Some(_), None) => Outcome::Rewritten,
        };
        Some(Self { outcome, status, first_byte_ms, duration_ms, moved, left, bail_out })
    }
}

/// The outcome of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// Rewritten from its beginning to its end.
    Rewritten,
    /// Rewritten up to some point.
    RewrittenInPart,
    /// Delivered as it came. Another box of a pair may have rewritten it.
    PassedOn,
    /// A status of 400 or above, or no response.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(line: &str) -> PageLoad {
        PageLoad::parse(line).unwrap()
    }

    #[test]
    fn a_line_is_a_page_with_its_outcome() {
        let whole = page("200 12 340 7 - csp=2 document=31");
        assert_eq!((whole.outcome, whole.first_byte_ms, whole.duration_ms), (Outcome::Rewritten, Some(12), 340));
        assert_eq!((whole.moved, whole.left.len()), (Some(7), 2));
        let partly = page("200 12 340 7 too_long -");
        assert_eq!((partly.outcome, partly.bail_out.as_deref()), (Outcome::RewrittenInPart, Some("too_long")));
        assert_eq!(partly.left, []);
        assert_eq!(page("200 - 3 - - -").outcome, Outcome::PassedOn);
        assert_eq!([page("503 - 3 - - -").outcome, page("0 - 3 - - -").outcome], [Outcome::Failed; 2]);
        assert_eq!(PageLoad::parse("nonsense"), None);
    }
}
