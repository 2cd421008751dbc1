//! The configurations that a box had: what `longhaul run` writes down, and what `longhaul history` and `longhaul rollback`
//! read.
//!
//! Each configuration is one file in the folder that outlives restarts. Only its owner and root may read it, because a
//! configuration names networks, peers and files of keys.

mod configuration;
mod find;
mod list;

pub use {
    configuration::Configuration,
    find::{Found, NoHistory},
    list::History,
};
