//! Objects of a page that come earlier than the browser asks for them: fetched into the cache while the page passes, or
//! put into the page itself. Pure.
//!
//! Both hang on two seams of `url-rewriting`: [`Observer`](url_rewriting::Observer) is told of every URL of a page, and
//! [`Substitute`](url_rewriting::Substitute) may put an object in the place of its URL. That crate knows nothing of this one.
//!
//! | module | job |
//! |---|---|
//! | [`config`] | the section of the filter's configuration |
//! | [`prefetch`] | a page's objects fetched into the cache |
//! | [`inline`] | small objects put into the page |
//! | `true_url` | where an object is that was moved |

pub mod config;
pub mod inline;
pub mod prefetch;
mod true_url;

pub use config::{Budget, Config};
