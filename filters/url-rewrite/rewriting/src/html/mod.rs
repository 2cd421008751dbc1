//! Pages: finding URLs in HTML and patching them in place.
//!
//! | file | does |
//! |---|---|
//! | `rewriter` | chunks in, chunks out; keeps every byte, whatever happens |
//! | `reader` | drives the next two and hands what they find to the page |
//! | `skimmer` | finds what looks like tags, fast |
//! | `oracle` | knows whether it is one: `lol_html`, as a finder only |
//! | `elements` | what an element's name says |
//! | `tag`, `attributes` | one start tag, read from its raw bytes |
//! | `page` | what is known about the page, and what becomes of each tag |
//! | `value` | the value of one attribute: its URLs decided, changes brought back to the bytes of the page |

pub(crate) mod attributes;
mod elements;
mod oracle;
mod page;
mod reader;
pub(crate) mod rewriter;
mod skimmer;
pub(crate) mod tag;
mod value;
