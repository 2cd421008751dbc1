//! The longhaul command: `longhaul.yaml` to Envoy and CoreDNS configuration: checked, rendered, run, explained.
//!
//! The way of a file: [`config`] reads it into checked, immutable [`config::Settings`]; [`derive`] computes the transport
//! from the link; [`render`] makes Envoy's and CoreDNS's files from both, without touching a disk; [`run`] writes them,
//! starts the processes and applies changes. Nothing further down the way checks what was checked before.

pub mod cli;
pub mod config;
pub mod derive;
pub mod explain;
pub mod host;
pub mod pair;
pub mod render;
pub mod run;
pub mod status;
