//! Header policy: pure decisions about requests and parts of responses, as lists of edits that the filter's glue applies.
//!
//! | module | job |
//! |---|---|
//! | `fields` | a header list to read, edits to make, a reply to send instead |
//! | [`request`] | reverse map, gate of the proxy origin, what goes up |
//! | [`csp`] | policies of the page translated, never widened; what they let move |
//! | `embedding` | which pages may show a moved object |
//! | `interstitial` | the page that a navigation to the proxy's own origin gets |
//! | `etag` | entity tags that name the version of the rewriting |
//! | `referer` | the address a page has without us |
//! | `link` | preloads and their kin, as the `link` element has them |
//! | `location` | redirects inside the prefix space |

pub mod csp;
pub(crate) mod embedding;
pub(crate) mod etag;
mod fields;
mod interstitial;
pub(crate) mod link;
pub(crate) mod location;
mod referer;
pub mod request;

pub use embedding::host_of;
pub use fields::{Edit, Fields, Reply, ReplyReason};
