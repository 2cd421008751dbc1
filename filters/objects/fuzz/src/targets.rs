//! The targets. Each panics where a law is broken.

mod rules;

use fuzz_driver::Target;

use crate::seeds;

#[cfg(test)]
pub(crate) use rules::read as read_rules;
pub use rules::rules;

/// Every target.
pub const TARGETS: &[Target] = &[("rules", rules, seeds::rules)];
