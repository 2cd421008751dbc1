//! Changes to header lists, which the proxy makes.

/// One change to a header list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Gives the field exactly this one value.
    Set(&'static str, Vec<u8>),
    /// Removes all values of the field.
    Remove(&'static str),
}
