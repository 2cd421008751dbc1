//! One start tag, read from its raw bytes.

pub(crate) mod attributes;
pub(crate) mod tag;
