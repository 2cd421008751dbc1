//! A link emulator on TUN devices. It measures the effect of a slow link with a long delay on traffic.
//!
//! One process holds a TUN device in each of two network namespaces and carries IP packets between them:
//!
//! ```text
//!      namespace A                       longhaul-link                          namespace B
//!  (clients)  tun0 ──read──► tap ──► Direction "up":   queue, rate, delay … ──write──► tun1  (wired side)
//!             tun0 ◄──write── Direction "down": delay, rate, queue … ◄── tap ◄──read── tun1
//! ```
//!
//! The modules:
//! - [`profile`] reads and checks the properties of a link, in TOML. The built-in links name the source of their
//!   numbers.
//! - [`impairment`] has one file each for queue, rate, delay, jitter, losses, reordering, duplication and outages.
//! - [`direction`] applies them to a packet in their order. It is pure: it has no clock and no I/O, and moments are
//!   arguments.
//! - [`random`] derives an independent stream for each kind of decision from one seed.
//! - [`observe`] lists the TCP connections, UDP flows and DNS queries on the link. [`capture`] writes the packets to a
//!   file, and [`timeline`] counts bytes by time.
//! - [`engine`] is the event loop between the two [`end`]s (the devices) and the two directions. [`scheduling`] keeps
//!   it on time, and [`control`] receives commands while it runs.
//! - [`statistics`] is the JSON output, from [`counters`] and [`spread`].

// Reports and tests convert counts to averages. No count comes near 2^52, up to which f64 is exact.
#![allow(clippy::cast_precision_loss)]

pub mod capture;
pub mod control;
pub mod counters;
pub mod direction;
pub mod end;
pub mod engine;
pub mod impairment;
pub mod observe;
pub mod profile;
pub mod random;
pub mod scheduling;
pub mod spread;
pub mod statistics;
pub mod time;
pub mod timeline;

use serde::Serialize;

/// A direction of the link. End A is the clients' end and end B the wired one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From A to B: requests.
    Up,
    /// From B to A: responses.
    Down,
}
