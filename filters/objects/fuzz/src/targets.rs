//! The targets. Each panics where a law is broken.

mod head;
mod rules;

use fuzz_driver::Target;

use crate::seeds;

pub use head::head;
#[cfg(test)]
pub(crate) use head::{read as read_head, sealed};
#[cfg(test)]
pub(crate) use rules::read as read_rules;
pub use rules::rules;

/// Every target.
pub const TARGETS: &[Target] = &[("head", head, seeds::head), ("rules", rules, seeds::rules)];
