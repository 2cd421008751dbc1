//! Why a body was passed on untouched from some point.

use std::fmt;

/// Why rewriting stopped. Whatever it was, the body is whole: what was rewritten before stays, the rest is as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BailOut {
    /// It needed more memory than `limits.page_memory_bytes`.
    Memory,
    /// It grew by `limits.output_growth_bytes`.
    Growth,
    /// Its encoding is not an extension of ASCII.
    Encoding,
    /// The parser stopped, or lost its position in the input: a fault of ours, not of the page.
    Parser,
}

impl BailOut {
    /// Every cause, in the order of declaration.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Growth, Self::Encoding, Self::Parser];

    /// The metric label, `snake_case`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Growth => "growth",
            Self::Encoding => "encoding",
            Self::Parser => "parser",
        }
    }

    /// Position in [`BailOut::ALL`], for arrays of counters.
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for BailOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
