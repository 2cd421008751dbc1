//! Brings the objects of a page to the browser earlier. It prefetches them into the cache while the page passes, or puts
//! them into the page itself. Pure.
//!
//! The crate implements two traits of `url-rewriting`. An [`Observer`](url_rewriting::Observer) receives every URL of a
//! page. A [`Substitute`](url_rewriting::Substitute) may put an object in the place of its URL. `url-rewriting` does not
//! depend on this crate.
//!
//! | module | job |
//! |---|---|
//! | [`config`] | the section of the filter's configuration |
//! | [`prefetch`] | fetches a page's objects into the cache |
//! | [`inline`] | puts small objects into the page |
//! | `true_url` | finds the true URL of a moved object |

pub mod config;
pub mod inline;
pub mod prefetch;
mod true_url;

pub use config::{Budget, Config};
