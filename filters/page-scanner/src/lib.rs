//! Where do URLs stand in these bytes? Pages and style sheets as they stream by: pure, no I/O.
//!
//! A [`Scanner`] reads one body in any chunks. It reports each URL to a [`Visitor`], with what its place says about the
//! object, and writes the visitor's replacement in its place. It knows no policy, no configuration of a proxy and no headers.
//! From `url-mapping` it takes two words, [`Use`](url_mapping::Use) and [`Reason`](url_mapping::Reason).
//!
//! Laws:
//! - in HTML, it reports exactly the places that the parser `lol_html` finds (`tests/finding.rs`, on saved pages and on
//!   random markup);
//! - in SVG and `MathML`, it reports no place that `lol_html` does not find;
//! - only the bytes of a replaced URL change: an edit is a range of the input;
//! - cut anywhere, a body gives the same reports and the same output;
//! - memory is bounded by [`Limits`], and beyond a limit the rest of the body leaves as it came ([`BailOut`]).
//!
//! | module | job |
//! |---|---|
//! | [`Scanner`] | one body of either kind: chunks in, chunks out |
//! | [`Visitor`] | the seam: URLs out, replacements in |
//! | `html` | pages: tags, foreign content, attributes |
//! | `css` | style sheets, style elements and style attributes |
//! | `markup` | one start tag, read from its raw bytes |
//! | [`places`] | the places of URLs: the whole policy on one screen |
//! | `rules`, [`links`], `media` | rules of places that look at the rest of the tag: `type`, `rel`, `media` |
//! | `srcset`, [`refresh`] | URLs inside of attribute values |
//! | `char_refs`, `charset` | values decoded, and written again |
//! | `find` | bytes found sixteen at a time, and bit masks of sixty-four |
//! | `patch` | a copy of the input with a few ranges replaced |
//! | `unpack` | gzip bodies, decompressed as they stream by |
//! | [`Limits`], [`BailOut`] | bounds, and the reasons to stop |

mod bail_out;
mod char_refs;
mod charset;
mod css;
mod find;
mod html;
mod limits;
pub mod links;
mod markup;
mod media;
mod patch;
pub mod places;
pub mod refresh;
mod rules;
mod scanner;
mod srcset;
mod unpack;
mod visitor;

pub use bail_out::BailOut;
pub use limits::Limits;
pub use places::Place;
pub use scanner::{Chunk, Kind, Scanner};
pub use unpack::{Broken, Packing, Unpacker};
pub use visitor::{Fits, LoadRequest, UrlReference, Visitor};
