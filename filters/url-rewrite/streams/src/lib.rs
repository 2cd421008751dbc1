//! The url-rewrite filter. It passes the callbacks of a host to the pure crates and does nothing else.
//!
//! One callback makes one call into `url_rewriting` or `page_objects`, which returns a value (edits, a reply, bytes);
//! this crate applies it. No `if` in this crate concerns URLs, headers or markup; `filters/README.md` gives the reason.
//!
//! | module | callbacks |
//! |---|---|
//! | `root` | configuration |
//! | `shared` | state that all streams of a configuration share |
//! | `stream` | requests and responses |
//! | `counters` | metrics for Prometheus |
//! | `objects` | the prefetching of a page's objects |
//! | `account` | a page's fields in the access log |

mod account;
mod counters;
mod objects;
mod root;
mod shared;
mod stream;

pub use shared::Shared as UrlRewrite;
