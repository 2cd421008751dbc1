//! Whose bytes cross the link next: equal shares for clients, and small things first.
//!
//! A pair that sends a little less than its link carries owns the queue in front of the link. This crate is that queue's
//! order. It holds no bytes: streams say how many they have, and hear when they may send them.
//!
//! - **A page goes before downloads.** A client that was quiet has saved up two seconds of the link, and is before all who have
//!   used theirs up. Downloads keep a quarter of the link (`burst`).
//! - **Among clients** it is start-time fair queueing (Goyal, Vin, Cheng 1996). A client's virtual time advances with each byte,
//!   the more slowly the larger its weight. The client with the least virtual time is next. One that was idle starts at the
//!   virtual time of the client that was served last, so idle time earns nothing else.
//! - **Among the streams of a client** the least attained service is first: a stream that has sent little is a page, a
//!   lookup or a keystroke, and one that has sent much is a download.
//! - **A connection that is full** holds up its streams, so what has had its turn leaves the box at once.
//! - **The rate** counts what a piece costs on the link, with the headers of all layers.
//!
//! | module | does |
//! |---|---|
//! | [`config`] | the configuration of the filter |
//! | [`subscriber`] | the client of an address |
//! | [`introduction`] | the client that a connection's first bytes name |
//! | [`cost`] | the bytes of a piece on the link |
//! | [`allowance`] | the bytes that may be sent now |
//! | `burst` | the bytes of a client that go before downloads |
//! | [`link`] | the order |
//! | [`renewal`] | the connections whose congestion control starts again |

/// The name of the filter in Envoy's configuration and in files.
pub const NAME: &str = "link-share";

mod account;
pub mod allowance;
mod burst;
pub mod config;
pub mod cost;
pub mod introduction;
pub mod link;
pub mod renewal;
pub mod subscriber;

pub use account::StreamId;
pub use config::{Config, Direction, LinkConfig};
pub use introduction::Introduction;
pub use link::{Link, Verdict};
pub use renewal::Renewals;
pub use subscriber::Subscriber;
