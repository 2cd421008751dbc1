//! The configuration of `longhaul-objects`: `longhaul render` writes it, and the program reads it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The header of a request whose response may be stored. Envoy compresses such a response for the store, and removes the
/// header before the origin.
pub const MARK: &str = "x-longhaul-fill";

/// The configuration. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The socket for Envoy's requests.
    pub listen: PathBuf,
    /// Envoy's socket for requests to origins.
    pub origin: PathBuf,
    /// The socket of the counters.
    pub metrics: PathBuf,
    /// The folder of the store. Only this program's user may read it.
    pub folder: PathBuf,
    /// The room on the disk.
    pub disk_bytes: u64,
    /// The memory for small objects that many clients request.
    pub hot_bytes: u64,
    /// The largest object that is stored.
    pub object_bytes: u64,
}
