//! The program `longhaul-images`: makes images smaller on their way from origins into the cache.
//!
//! ```text
//! Envoy: cache ─► cluster images ─► [longhaul-images] ─► Envoy's socket for origins ─► guard ─► origin
//!                                        │  ▲
//!                             one image  ▼  │  WebP or a reason
//!                                   [child process: no files, no network, bounded memory and time]
//! ```
//!
//! | module | job |
//! |---|---|
//! | [`serve`] | the sockets: connections, the end |
//! | [`exchange`] | one request: to the origin and back, recoded or as it was |
//! | [`body`] | a body of which a part was read before |
//! | [`pool`] | child processes, the time limit |
//! | [`slots`] | which client's image gets a worker, and how long it waits |
//! | [`failures`] | images whose worker failed lately |
//! | [`message`] | what parent and child say to each other |
//! | [`worker`] | the child: one image, then it ends |
//! | [`sandbox`] | what the child gives up before it reads a byte |
//! | [`metrics`], [`log`] | counters, and lines for the supervisor |
//!
//! Laws, held by tests with real processes:
//!
//! - The client gets the origin's bytes or the whole variant, whatever happens to an image or a child.
//! - A response that is not an image to be recoded passes unchanged.
//! - Memory is bounded: 32 MiB of bodies at a time, and the limit of each child.

pub mod body;
pub mod exchange;
pub mod failures;
pub mod log;
pub mod message;
pub mod metrics;
pub mod pool;
pub mod sandbox;
pub mod serve;
pub mod slots;
pub mod worker;
