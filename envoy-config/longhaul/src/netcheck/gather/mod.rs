//! Gathers the facts: everything here reads this machine or waits for another one, and nothing here judges.
//!
//! | module | reads |
//! |---|---|
//! | `host` | the packet filter and kernel settings |
//! | `names` | resolvers, the clock of an origin, and QUIC |
//! | `frames` | the few frames of HTTP/2 that `path` sends |
//! | `path` | the round trip and the sizes of packets that pass |
//! | `rate` | the rate towards the ground |

mod frames;
pub(super) mod host;
pub(super) mod names;
pub(super) mod path;
pub(super) mod rate;
