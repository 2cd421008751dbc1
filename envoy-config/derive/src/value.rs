//! A derived value with its formula and source.

use std::fmt;

/// A value with its formula and source. The rendered files show both in a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value<T> {
    /// The value in use.
    pub value: T,
    /// The formula with its numbers, for example `rate 20mbit x RTT 600ms / 8`.
    pub formula: String,
    /// The source of the formula: an RFC, a paper or a measurement.
    pub source: &'static str,
    /// The origin of the value: the formula or the operator.
    pub origin: Origin,
}

/// The origin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Computed from the link.
    Derived,
    /// Set by the operator under `transport:`.
    Overridden {
        /// The line of the configuration file, from 1.
        line: usize,
    },
}

impl<T> Value<T> {
    /// Returns the comment of one line that the rendered files put beside the value.
    pub fn comment(&self) -> String {
        match self.origin {
            Origin::Derived => format!("{} [{}]", self.formula, self.source),
            Origin::Overridden { line } => {
                format!("set by the operator, transport: line {line}; derived would be {}", self.formula)
            }
        }
    }
}

/// A TCP congestion control of the Linux kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CongestionControl {
    /// The control that is set on the proxy's sockets.
    Named(String),
    /// The default of the host. The sockets set none.
    HostDefault,
}

impl fmt::Display for CongestionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::HostDefault => f.write_str("host"),
        }
    }
}

/// A row of the table that `longhaul check` prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The key under `transport:`.
    pub name: &'static str,
    /// The value with its unit, as `transport:` accepts it.
    pub value: String,
    /// The purpose of the value.
    pub purpose: &'static str,
    /// The formula, with its numbers.
    pub formula: String,
    /// The source of the formula.
    pub source: &'static str,
    /// The origin of the value.
    pub origin: Origin,
}
