//! Judges the facts. Everything here is pure: facts and settings in, lines out.
//!
//! | module | judges |
//! |---|---|
//! | `host` | ports, packet filter, kernel settings |
//! | `names` | resolvers, clock, QUIC |
//! | `peer` | handshake, round trip, sizes of packets, rate |

pub(super) mod host;
pub(super) mod names;
pub(super) mod peer;
