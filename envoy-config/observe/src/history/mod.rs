//! The configurations that a box had: what `longhaul run` writes down, and what `longhaul history` and `longhaul rollback`
//! read.
//!
//! Each configuration is one file in the folder that outlives restarts. Only its owner and root may read it, because a
//! configuration names networks, peers and files of keys.

mod configuration;
mod find;
mod list;

pub use {
    configuration::{Came, Configuration},
    find::{Found, NoHistory, find},
    list::History,
};

/// The name of the folder, in the folder `kept` of the state folder.
pub const FOLDER: &str = "history";
/// The configurations that are kept. Junos keeps as many.
pub const KEPT: usize = 50;
/// The longest record that is read or written, in bytes. A longer configuration is not kept.
pub const MAX_BYTES: u64 = 1 << 20;
