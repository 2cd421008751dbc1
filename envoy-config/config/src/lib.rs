//! `longhaul.yaml`: parsed, checked, then immutable.
//!
//! `yaml` turns text into nodes with places. `read` turns nodes into [`Settings`] group by group, and uses `reader` for
//! the kinds of value. The table of keys (`keys`) holds names, ranges and defaults. `contradictions` runs last. The
//! parser collects all problems (`diagnostic`), so an operator sees them at once.

mod access_log;
mod allowlist;
mod authorities;
mod certificate;
mod contradictions;
mod device_name;
mod diagnostic;
mod implausible;
mod keys;
mod link_model;
mod load;
mod names;
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
mod top_level_domain;
mod units;
mod validity;
mod yaml;

pub use {
    access_log::{AccessLog, Log, LogWish, LoggedClients},
    device_name::DeviceName,
    diagnostic::{Elsewhere, Problem, Report, Severity},
    keys::man_page,
    link_model::{LinkClass, LinkModel},
    load::{LoadError, Loaded, load, load_as, load_text},
    names::{Host, HostName, HostPort, NameError},
    overrides::{Override, OverrideValue, TransportKey},
    peer_name::PeerName,
    settings::*,
    sockets::{Family, Sockets, reaches},
    units::{Bytes, Rate, UnitError, parse_duration, show_duration},
    validity::{Lifetime, Validity},
};
