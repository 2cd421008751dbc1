//! Transport settings computed from the link: every value with the formula and source it came from.
//!
//! An operator gives two numbers, RTT and rate; what follows from them is here, in one table ([`table`]), and each line
//! of it can be overridden by the name that `longhaul check` prints.

mod host;
mod table;
mod target;
mod value;

pub use host::{CongestionControls, HostFacts};
pub use table::{Derived, derive, offers_http3};
pub use target::{TargetChoice, TargetKind};
pub use value::{CongestionControl, Origin, Row, Value};
