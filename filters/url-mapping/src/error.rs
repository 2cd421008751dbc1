//! Errors in the rules.

use std::fmt;

/// An invalid rule: its key, its value and the expected value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// The key, with an index for a list: `targets.https[1]`.
    pub key: String,
    /// The value.
    pub found: String,
    /// The expected value.
    pub expected: &'static str,
}

impl fmt::Display for RuleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: expected {}, found `{}`", self.key, self.expected, self.found)
    }
}

impl std::error::Error for RuleError {}
