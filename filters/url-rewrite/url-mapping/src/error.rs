//! Why rules do not compile.

use std::fmt;

/// A rule that cannot be compiled: which one, what it says, what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// The key, with an index where it is a list: `targets.https[1]`.
    pub key: String,
    /// What was found there.
    pub found: String,
    /// What was expected.
    pub expected: &'static str,
}

impl fmt::Display for RuleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: expected {}, found `{}`", self.key, self.expected, self.found)
    }
}

impl std::error::Error for RuleError {}
