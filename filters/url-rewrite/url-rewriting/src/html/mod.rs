//! Pages: finding URLs in HTML and patching them in place.
//!
//! | file | does |
//! |---|---|
//! | `rewriter` | chunks in, chunks out; keeps every byte, whatever happens |
//! | `reader` | drives the next two and hands what they find to the page |
//! | `skimmer` | finds the tags worth a look, fast |
//! | `names`, `tag_end`, `raw_text`, `input` | what it is made of: which names, where a tag ends, where a text ends |
//! | `oracle` | knows what is a tag in SVG and MathML: `lol_html`, as a finder only |
//! | `elements` | what an element's name says |
//! | `rules` | the verdicts that need more than the place of an attribute |
//! | `page` | what is known about the page, and what becomes of each tag |
//! | `value` | the value of one attribute: its URLs decided, changes brought back to the bytes of the page |

mod elements;
mod input;
mod names;
mod oracle;
mod page;
mod raw_text;
mod reader;
pub(crate) mod rewriter;
mod rules;
mod skimmer;
mod tag_end;
mod value;
