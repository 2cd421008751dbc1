//! `longhaul.yaml`: as written, then checked and immutable.
//!
//! Text becomes nodes with places (`yaml`); nodes are read group by group (`read`, with `reader` for the kinds of value)
//! into [`Settings`]; what does not go together is found last (`contradictions`). Everything that is wrong is collected
//! ([`diagnostic`]), so that an operator sees all of it at once.

pub mod allowlist;
mod certificate;
mod contradictions;
pub mod diagnostic;
pub mod keys;
mod link_model;
mod load;
pub mod names;
mod overrides;
mod read;
mod reader;
mod settings;
pub mod units;
mod yaml;

pub use link_model::{LinkClass, LinkModel, bandwidth_delay_product};
pub use load::{FileHashes, LoadError, Loaded, load, load_text};
pub use names::{Host, HostName, HostPort};
pub use overrides::{Override, OverrideValue, Overrides, TransportKey, ValueKind};
pub use settings::*;
