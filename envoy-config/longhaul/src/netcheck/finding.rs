//! A line of the result.

use super::table::Check;

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All is well.
    Ok,
    /// Longhaul works, and something is worse than it could be.
    Warning,
    /// Longhaul does not work, or not for all clients. The command ends with status 1.
    Error,
    /// The check could not be made, for the reason in the text.
    Skipped,
}

impl Verdict {
    /// Returns the word of the output.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Skipped => "skipped",
        }
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The check.
    pub check: Check,
    /// Its weight.
    pub verdict: Verdict,
    /// The fact, in one line.
    pub text: String,
    /// The words to type or to write. None if nothing is to be done, or if the text says it.
    pub cure: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: Check, text: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Ok, text: text.into(), cure: None }
    }

    pub(super) fn skipped(check: Check, text: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Skipped, text: text.into(), cure: None }
    }

    pub(super) fn warning(check: Check, text: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Warning, text: text.into(), cure: Some(cure.into()) }
    }

    pub(super) fn error(check: Check, text: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Error, text: text.into(), cure: Some(cure.into()) }
    }
}
