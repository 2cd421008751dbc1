//! Header policy. Pure decisions about requests and parts of responses, as lists of edits. The filter's glue applies
//! the edits.
//!
//! | module | job |
//! |---|---|
//! | `reason` | the reason for a local response, for metrics |
//! | [`request`] | maps requests back to their origin, guards the proxy's own origin, edits request headers |
//! | [`csp`] | translates a page's policies without widening them, and says which URLs they let move |
//! | `embedding` | decides which pages may show a moved object |
//! | `interstitial` | the page sent to a navigation to the proxy's own origin |
//! | `etag` | entity tags that name the version of the rewriting |
//! | `referer` | restores the `Referer` that the origin would get without the proxy |
//! | `link` | preloads and other links in the `Link` field, as for the `link` element |
//! | `location` | redirects inside the prefix space |

pub mod csp;
pub(crate) mod embedding;
pub(crate) mod etag;
mod interstitial;
pub(crate) mod link;
pub(crate) mod location;
mod reason;
mod referer;
pub mod request;

pub use http_semantics::{Edit, Fields, Reply};
pub use reason::ReplyReason;
