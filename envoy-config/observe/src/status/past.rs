//! The last problems: when each began, and how long it stood.

use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

use super::words::time;
use crate::report::ProblemRecord;

/// A problem that stands or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct PastProblem {
    /// The record.
    #[serde(flatten)]
    pub record: ProblemRecord,
    /// Its duration so far, in seconds.
    pub duration_s: u64,
}

impl PastProblem {
    pub(super) fn of(record: ProblemRecord, now: u64) -> Self {
        Self { duration_s: record.duration_s(now), record }
    }

    /// Returns it in one line: `2026-11-26T07:55:39Z, 52 s: ...`.
    #[must_use]
    pub(super) fn words(&self) -> String {
        let Self { record, duration_s } = self;
        let so_far = if record.ended.is_none() { " so far" } else { "" };
        format!("{}, {}{so_far}: {}", utc(record.began), time(*duration_s), record.text)
    }
}

/// Returns a time in seconds since 1970 as RFC 3339 writes it.
pub(super) fn utc(at: u64) -> String {
    // A time beyond what the format can write is a fault of the clock.
    const LAST: u64 = 253_402_300_799;
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(at.min(LAST))).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ProblemKind;

    #[test]
    fn a_problem_is_one_line_with_its_beginning_and_its_duration() {
        let kind = ProblemKind::LinkSilent;
        let record = ProblemRecord { kind, of: String::new(), text: "silence".to_owned(), began: 60, ended: Some(112) };
        assert_eq!(PastProblem::of(record.clone(), 500).words(), "1970-01-01T00:01:00Z, 52 s: silence");
        let stands = ProblemRecord { ended: None, ..record };
        assert_eq!(PastProblem::of(stands, 360).words(), "1970-01-01T00:01:00Z, 5 min so far: silence");
        assert_eq!(utc(u64::MAX), "9999-12-31T23:59:59Z");
    }
}
