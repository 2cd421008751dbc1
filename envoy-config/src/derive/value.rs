//! A derived value and where it came from.

use std::fmt;

/// A value together with how it was found, so that the rendered files can say it as a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value<T> {
    /// The value in use.
    pub value: T,
    /// How it was found, with the numbers in it: `rate 20mbit x RTT 600ms / 8`.
    pub formula: String,
    /// The source of the formula: an RFC, a paper, a measurement.
    pub source: &'static str,
    /// Derived, or set by the operator.
    pub origin: Origin,
}

/// The origin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Computed from the link.
    Derived,
    /// Written under `transport:` on this line of the configuration file.
    Overridden {
        /// From 1.
        line: usize,
    },
}

impl<T> Value<T> {
    /// One line for a comment beside the value.
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
    /// Set on our sockets.
    Named(String),
    /// Sockets keep what the host has as its default.
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

/// A line of the table that `longhaul check` prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The name, which is the key under `transport:`.
    pub name: &'static str,
    /// The value with its unit, written as it would be under `transport:`.
    pub value: String,
    /// Its purpose.
    pub purpose: &'static str,
    /// The formula with its numbers.
    pub formula: String,
    /// The source of the formula.
    pub source: &'static str,
    /// The origin of the value.
    pub origin: Origin,
}
