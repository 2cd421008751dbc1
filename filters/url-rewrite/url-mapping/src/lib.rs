//! What a URL becomes on the proxy, and back: pure, no I/O, no HTML.
//!
//! An object at `http://HOST[:PORT]/path?query` moves to `TARGET/HOST[:PORT]/path?query`, where `TARGET` is one of the
//! proxy's own `https://NAME` or `http://ADDRESS`. Port 443 in the moved form says that the origin is https, any other
//! port or none says http; what cannot be said is not moved. The map keeps no state, so that every proxy of an operator
//! can serve the URLs of every other one.
//!
//! Laws (`tests/laws.rs`):
//! - `reverse(forward(u)) == u`, as a browser would request `u`;
//! - `forward(forward(u)) == forward(u)`: what points to the proxy already is left;
//! - an https object never moves to an http target;
//! - fast paths agree with the WHATWG URL parser, here the `url` crate.
//!
//! | module | job |
//! |---|---|
//! | [`mapper`](Mapper) | rules as configured, checked once and compiled |
//! | `base` | what a reference is relative to: the document's URL and where the browser got it |
//! | `reference` | the shape of a reference, without allocation |
//! | `host` | which host names can stand in a moved URL |
//! | `forward` | reference to moved URL, or the reason it is left |
//! | `reverse` | request on the proxy's own authority to the origin's URL |
//! | `shard` | which target a host lives on |
//! | `site` | which hosts are of one site, and how far a page's cookies reach |
//! | `outcome` | [`Outcome`], [`Reason`]: the vocabulary of metrics and `longhaul explain` |
//! | `usage` | [`Use`], [`Level`]: which kinds of object move at which level |

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
