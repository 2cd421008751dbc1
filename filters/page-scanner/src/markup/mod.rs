//! One start tag, read from its raw bytes.

pub(crate) mod attributes;
pub(crate) mod tag;

pub use crate::char_refs::Quote;
pub use attributes::Attribute;
pub use tag::Tag;
