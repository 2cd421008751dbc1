//! A link emulator on TUN devices: a measuring instrument for what a slow, far-away link does to traffic.
//!
//! One process holds a TUN device in each of two network namespaces and carries IP packets between them:
//!
//! ```text
//!      namespace A                       longhaul-link                          namespace B
//!  (clients)  tun0 ──read──► tap ──► Direction "up":   queue, rate, delay … ──write──► tun1  (wired side)
//!             tun0 ◄──write── Direction "down": delay, rate, queue … ◄── tap ◄──read── tun1
//! ```
//!
//! The map:
//! - [`profile`] what a link is like: TOML, checked; ten links come with the program, each with its source.
//! - [`impairment`] one file each for queue, rate, delay, jitter, losses, reordering, duplication, outages.
//! - [`direction`] the order in which a packet meets them. Pure: no clock, no input or output, moments as arguments.
//! - [`random`] one seed, an independent stream for each decision.
//! - [`observe`] what crossed the link: TCP connections, DNS queries. [`capture`] writes it down, [`timeline`] when.
//! - [`engine`] the event loop between [`end`] (the devices) and two directions, on time by [`scheduling`]; [`control`]
//!   commands it while it runs.
//! - [`statistics`] the JSON it writes, from [`counters`] and [`spread`].

// Counts become averages in reports and tests; none comes near the 2^52 up to which f64 is exact.
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

/// A direction of the link. End A is the clients' end, end B the wired one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From A to B: requests.
    Up,
    /// From B to A: answers.
    Down,
}
