//! The longhaul command. It checks `longhaul.yaml`, renders the configuration of Envoy and CoreDNS, runs both, and
//! explains its decisions.
//!
//! [`longhaul_config`] reads a file into checked, immutable [`longhaul_config::Settings`]. [`longhaul_derive`] computes
//! the transport from the link. [`longhaul_render`] makes the files of Envoy and CoreDNS from both, without touching a
//! disk. [`run`] writes them, starts the processes and applies changes. [`longhaul_observe`] tells what happens then. No
//! later part repeats a check of an earlier one.

pub(crate) mod bugreport;
mod cli;
mod dns_query;
pub(crate) mod explain;
pub(crate) mod host;
mod log_files;
pub(crate) mod netcheck;
pub(crate) mod pair;
mod replaced_file;
pub(crate) mod run;
mod terminal;
pub(crate) mod web;

pub use cli::{describe, main};
