//! One configuration that was in force: its text, how it came, and how the box was with it.

use serde::{Deserialize, Serialize};

use crate::report::ProblemKind;
use crate::status::time;

/// The time in which a problem would have been noticed, in seconds: three looks of the run.
const NOTICED_S: u64 = 6;

/// The way in which a configuration came into force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Came {
    /// A run started with it.
    Start,
    /// It was taken over while the box ran.
    Change,
    /// Another version of Longhaul started with it.
    Version,
}

/// A configuration that is or was in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Its number. A later one has a larger number.
    pub number: u32,
    /// The file it was read from.
    pub file: std::path::PathBuf,
    /// The way in which it came into force.
    pub(super) came: Came,
    /// The version of Longhaul.
    pub(crate) version: String,
    /// The time since when it is in force, in seconds since 1970.
    pub(crate) began: u64,
    /// The last time at which it was known to be in force, in seconds since 1970.
    pub seen: u64,
    /// The time for which a run served with it, in seconds.
    pub served_s: u64,
    /// The part of that time in which a problem stood, in seconds.
    pub problem_s: u64,
    /// The kinds of problems that stood meanwhile.
    pub(crate) problems: Vec<ProblemKind>,
    /// Those that stood at `seen`.
    pub standing: Vec<ProblemKind>,
    /// SHA-256 of the text, in hex.
    pub sha256: String,
    /// The text of the file.
    pub text: String,
}

impl Configuration {
    /// Counts the time up to `now`, in seconds since 1970, for the problems that stood until then. `standing` are those of
    /// now.
    pub fn tally(&mut self, now: u64, standing: &[ProblemKind]) {
        // A clock that was set back counts as no time.
        let passed = now.saturating_sub(self.seen);
        self.served_s += passed;
        if !self.standing.is_empty() {
            self.problem_s += passed;
        }
        self.resume(now);
        self.standing = standing.to_vec();
        for kind in standing {
            if !self.problems.contains(kind) {
                self.problems.push(*kind);
            }
        }
    }

    /// Goes on at `now` without counting the time since `seen`: no run served meanwhile.
    pub(crate) fn resume(&mut self, now: u64) {
        self.seen = now;
        self.standing.clear();
    }

    /// Returns true if no problem stood when it was last seen, and false if one did. None if it was in force for too short a
    /// time to know.
    #[must_use]
    pub fn was_healthy(&self) -> Option<bool> {
        match (self.standing.is_empty(), self.served_s) {
            (false, _) => Some(false),
            (true, NOTICED_S..) => Some(true),
            (true, _) => None,
        }
    }

    /// Returns its health in words.
    #[must_use]
    pub fn health(&self) -> String {
        let named = |kinds: &[ProblemKind]| kinds.iter().map(|kind| kind.label()).collect::<Vec<_>>().join(", ");
        match (self.was_healthy(), self.problem_s) {
            (None, _) => format!("unknown: it served for {}", time(self.served_s)),
            (Some(false), _) => format!("problem at the end: {}", named(&self.standing)),
            (Some(true), 0) => "ok".to_owned(),
            (Some(true), some) => format!("ok; problems for {}: {}", time(some), named(&self.problems)),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn configuration(number: u32, text: &str) -> Configuration {
        Configuration {
            number,
            file: "/etc/longhaul/longhaul.yaml".into(),
            came: Came::Change,
            version: "0.2.0".to_owned(),
            began: 0,
            seen: 0,
            served_s: 0,
            problem_s: 0,
            problems: Vec::new(),
            standing: Vec::new(),
            sha256: format!("hash of {text}"),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_configuration_counts_the_time_with_problems_and_without() {
        let mut one = configuration(1, "a");
        one.tally(4, &[]);
        assert_eq!((one.was_healthy(), one.health().as_str()), (None, "unknown: it served for 4 s"));
        one.tally(60, &[]);
        assert_eq!((one.was_healthy(), one.health().as_str()), (Some(true), "ok"));
        one.tally(100, &[ProblemKind::LinkSilent]);
        assert_eq!((one.was_healthy(), one.health().as_str()), (Some(false), "problem at the end: link_silent"));
        one.tally(280, &[]);
        assert_eq!((one.served_s, one.problem_s), (280, 180));
        assert_eq!(one.health(), "ok; problems for 3 min: link_silent");
    }

    #[test]
    fn the_time_without_a_run_counts_as_neither_and_a_clock_that_goes_back_as_none() {
        let mut one = configuration(1, "a");
        one.tally(60, &[ProblemKind::GroundDown]);
        one.resume(1_000);
        assert_eq!(one.was_healthy(), Some(true));
        one.tally(1_010, &[]);
        assert_eq!((one.served_s, one.problem_s), (70, 0));
        one.tally(500, &[]);
        assert_eq!((one.served_s, one.seen), (70, 500));
    }
}
