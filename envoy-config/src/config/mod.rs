//! `longhaul.yaml`: as written, then checked and immutable.
//!
//! Text becomes nodes with positions ([`yaml`]); nodes are read section by section ([`read`]) into [`Settings`], and
//! everything that is wrong is collected ([`diagnostic`]) so that an operator sees all of it at once.

pub mod allowlist;
pub mod names;
mod settings;
pub mod units;

pub use settings::*;
