//! Pages: finding URLs in HTML and patching them in place.
//!
//! | file | does |
//! |---|---|
//! | `finder` | drives lol_html, whose output is thrown away: it only says where tags and raw text stand |
//! | `page` | what is known about the page so far, and what to do with each tag |
//! | `tag`, `attributes` | one start tag, read from its raw bytes |
//! | `value` | the value of one attribute: URL, candidate list or declarations |
//! | `rewriter` | chunks in, chunks out; keeps every byte, whatever happens |

pub(crate) mod attributes;
mod finder;
mod page;
pub(crate) mod rewriter;
pub(crate) mod tag;
mod value;
