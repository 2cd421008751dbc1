//! Transport settings computed from the link, each with its formula and source.
//!
//! An operator gives two numbers, RTT and rate. One table ([`table`]) holds the values that follow from them. Each can be
//! overridden by the name that `longhaul check` prints.

mod host;
mod table;
mod target;
mod value;

pub use host::{CongestionControls, HostFacts};
pub use table::{Derived, derive, offers_http3};
pub use target::{TargetChoice, TargetKind};
pub use value::{CongestionControl, Origin, Row, Value};
