//! Transport settings computed from the link, each with its formula and source.
//!
//! The operator gives the RTT and the rates of the link. One table ([`table`]) holds the values that follow from them.
//! The operator can override each value by the name that `longhaul check` prints.

mod bounds;
mod capacity;
mod cgroup;
mod compression;
mod failover;
mod host;
mod images;
mod intervals;
mod link_queue;
mod links;
mod names;
mod neighbours;
mod packets;
mod retransmission;
mod table;
mod target;
mod timers;
mod value;
mod warm;
mod windows;

pub use {
    capacity::{Capacity, Reasoned},
    compression::{Compressors, LevelInUse},
    failover::{Ejection, Failover},
    host::{CongestionControls, HostFacts},
    images::ImagesChoice,
    link_queue::{ClientAddress, LinkQueue, Shaping},
    links::{LinkPlan, LinkUse, MultipathUse, RatesInUse},
    names::names_ahead,
    neighbours::{Limit, Neighbours, Unshared},
    packets::Packets,
    table::{Derived, derive},
    target::{TargetChoice, TargetKind},
    timers::{Timer, Timers},
    value::{CongestionControl, Origin, Row, Value},
    warm::{Carrier, Warm},
};
