//! Decides whether a URL may move, and translates the headers of its page to match. Pure and streaming.
//!
//! [`page_scanner`] finds URLs in bodies, and [`url_mapping`] maps a URL to the proxy. This crate stands between them:
//! it knows the page's policies, preloads and cookies, and decides.
//!
//! | module | job |
//! |---|---|
//! | [`config`], [`plan`] | the configuration as written, and compiled |
//! | [`headers`] | decisions about requests, and parts of responses |
//! | [`response`], [`eligible`] | the headers of a response, and whether its body is rewritten |
//! | [`Rewriter`] | rewrites one body as a stream |
//! | `decider` | the scanner's visitor: decides and counts each URL |
//! | [`Preloads`] | moves a preload and its consumers together |
//! | [`Observer`] | the interface for code that observes decided URLs |
//! | [`Savings`] | an estimate of what moves save on the link |

pub mod config;
mod decider;
pub mod eligible;
mod event;
pub mod headers;
pub mod plan;
mod preloads;
pub mod response;
mod rewriter;
mod savings;

pub use config::Config;
pub use decider::UrlCounts;
pub use event::{Observer, UrlEvent};
pub use headers::csp::Policies;
pub use page_scanner::{BailOut, Broken, Chunk, Kind, Limits, Packing, Place};
pub use plan::{Ends, Plan, PlanError, Plans};
pub use preloads::Preloads;
pub use rewriter::{Body, Rewriter};
pub use savings::Savings;
