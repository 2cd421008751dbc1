//! `longhaul.yaml`: parsed, checked, then immutable.
//!
//! `yaml` turns text into nodes with places. `read` turns nodes into [`Settings`] group by group, and uses `reader` for
//! the kinds of value. The table of keys ([`keys`]) holds names, ranges and defaults. `contradictions` runs last. The
//! parser collects all problems ([`diagnostic`]), so an operator sees them at once.

mod access_log;
pub mod allowlist;
mod certificate;
mod contradictions;
pub mod diagnostic;
pub mod keys;
mod link_model;
mod load;
pub mod names;
mod no_effect;
mod overrides;
mod peer_name;
mod policy_zone;
mod read;
mod reader;
mod settings;
pub mod share;
mod slips;
mod sockets;
pub mod units;
mod validity;
mod yaml;

pub use access_log::AccessLog;
pub use diagnostic::FileHashes;
pub use link_model::{DeltaGain, LinkClass, LinkModel, bandwidth_delay_product};
pub use load::{LoadError, Loaded, load, load_text};
pub use names::{Host, HostName, HostPort};
pub use overrides::{Override, OverrideValue, Overrides, TransportKey, ValueKind};
pub use peer_name::{PeerName, PeerNameError};
pub use settings::*;
pub use share::Share;
pub use sockets::{Family, NotSockets, Sockets, overlap, reaches};
pub use validity::{Lifetime, Validity};
