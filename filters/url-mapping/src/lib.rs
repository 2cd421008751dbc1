//! Maps URLs to the proxy and back. The crate is pure: it does no I/O and knows no HTML.
//!
//! An object at `http://HOST[:PORT]/path?query` moves to `TARGET/HOST[:PORT]/path?query`, where `TARGET` is one of the
//! proxy's own `https://NAME` or `http://ADDRESS`. Port 443 in the moved URL means that the origin is https; any other
//! port, or none, means http. An origin that this form cannot express does not move. The map keeps no state, so every
//! proxy of an operator can serve the URLs of all others.
//!
//! Laws (`tests/laws.rs`):
//! - `reverse(forward(u)) == u`, for `u` as a browser would request it;
//! - `forward(forward(u)) == forward(u)`, because a URL that points to the proxy stays;
//! - an https object never moves to an http target;
//! - fast paths agree with the WHATWG URL parser, here the `url` crate.
//!
//! | module | job |
//! |---|---|
//! | [`mapper`](Mapper) | the configured rules, checked once and compiled |
//! | `base` | the base of a reference: the document's URL, and the URL from which the browser fetched it |
//! | `reference` | the shape of a reference, without allocation |
//! | `host` | the host names that a moved URL can hold |
//! | `forward` | from a reference to its moved URL, or to the reason why it stays |
//! | `reverse` | from a request on the proxy's own authority to the origin's URL |
//! | `shard` | the target of a host |
//! | `site` | the hosts of one site, and the reach of a page's cookies |
//! | `outcome` | [`Outcome`], [`Reason`]: the vocabulary of metrics and `longhaul explain` |
//! | `usage` | [`Use`], [`Level`]: the kinds of object that move at each level |

mod base;
mod error;
mod forward;
mod host;
mod mapper;
mod outcome;
mod reference;
mod reverse;
mod shard;
mod site;
mod usage;

pub use base::{Base, Scheme};
pub use error::RuleError;
pub use forward::Object;
pub use mapper::{Mapper, Rules, host_can_exist, port_of};
pub use outcome::{Outcome, Reason};
pub use reverse::{Origin, Refusal, Reverse};
pub use site::{Cookies, may_be_same_site, site_of};
pub use usage::{Level, Use};
