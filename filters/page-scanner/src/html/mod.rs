//! Pages: finding URLs in HTML and patching them in place.
//!
//! | file | does |
//! |---|---|
//! | `stream` | chunks in, chunks out; keeps every byte, whatever happens |
//! | `reader` | drives the next two and hands what they find to the page |
//! | `tag_scanner` | finds the tags worth a look, fast |
//! | `names`, `tag_end`, `raw_text`, `input` | its parts: names, the end of a tag, the end of a text |
//! | `foreign_content` | confirms the tags in SVG and MathML: `lol_html`, as a finder only |
//! | `elements` | what an element's name says |
//! | `page` | what is known about the page; reads each tag and style sheet |
//! | `value` | the value of one attribute: its URLs reported, changes brought back to the bytes of the page |

mod elements;
mod foreign_content;
mod input;
mod names;
mod page;
mod raw_text;
mod reader;
pub(crate) mod stream;
mod tag_end;
mod tag_scanner;
mod value;
