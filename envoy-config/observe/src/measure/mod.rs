//! Measures the link from the kernel's figures of TCP connections that cross it. It sends nothing.
//!
//! The kernel keeps the minimum round-trip time and the delivery rate of each connection (`tcp_info` in `linux/tcp.h`).
//! [`kernel`] reads them. [`watched`] chooses the connections that cross the link. [`estimate`] is pure arithmetic
//! for `longhaul measure`, and [`passive`] for a running box, which reads seldom. [`proposal`] words the `link:` line.
//! [`carried`] says how much of its rate a link carries now.
//! [`silence`] tells that a ground no longer responds.

mod answer;
mod black_hole;
mod carried;
mod estimate;
mod kernel;
mod multipath;
mod pair_end;
mod passive;
mod proposal;
mod silence;
mod watched;

pub use {
    answer::{Answer, measured},
    black_hole::BlackHole,
    carried::Carried,
    kernel::{Connection, ConnectionId, Kernel},
    pair_end::PairEnd,
    passive::{Noticed, Passive},
    silence::{Checks, Listening, Silent},
};
pub(crate) use {passive::Misfit, watched::Watched};

#[cfg(test)]
pub(crate) use estimate::tests::connection as tests_connection;
