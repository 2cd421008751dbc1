//! Changes to header lists, for the proxy to make.

/// One thing to do to a header list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Exactly this one value from now on.
    Set(&'static str, Vec<u8>),
    /// No value.
    Remove(&'static str),
}
