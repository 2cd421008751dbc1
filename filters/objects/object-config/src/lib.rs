//! The configuration of `longhaul-objects`: `longhaul render` writes it, and the program reads it.

use std::path::PathBuf;

use object_rules::groups::Group;
use object_rules::plain::PlainField;
use serde::{Deserialize, Serialize};

/// The header of a request whose response may be stored. Envoy compresses such a response for the store, and removes the
/// header before the origin.
pub const MARK: &str = "x-longhaul-fill";

/// The header of a response that is not stored. It says which requests for the URL may bypass the program
/// (`object_rules::PastFor`).
pub const PRIVATE: &str = "x-longhaul-private";

/// The header of a request that bypasses the program.
pub const PAST: &str = "x-longhaul-past";

/// The header of a response that says how the cache served it (`object_rules::Outcome`). Envoy moves it into the access log.
pub const OUTCOME: &str = "x-longhaul-outcome";

/// The header of a request by which a remote tells the ground that it caches the response. The value is the name of the remote.
pub const CACHES: &str = "x-longhaul-caches";

/// The header of a request to the cache of a remote: what a 304 of the ground would say (`object_rules::validation`), in hexadecimal.
pub const VALID: &str = "x-longhaul-valid";

/// The header of a request that a filter sends for itself. Filters keep variants apart without `Vary`.
pub const OWN: &str = "x-longhaul-own";

/// The configuration of the reader in Envoy, which serves small fresh responses from the same files. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReaderConfig {
    /// The folder of the store.
    pub folder: PathBuf,
    /// The memory for objects that many clients request.
    pub hot_bytes: u64,
    /// The largest object that the reader serves.
    pub object_bytes: u64,
    /// The most bytes of objects that are on their way to clients.
    pub sent_bytes: u64,
    /// Request fields that change no response, as the operator declares.
    pub plain_fields: Vec<PlainField>,
    /// True if clients that accept WebP get smaller variants of images.
    pub images: bool,
}

/// The configuration of the program. Sizes are in bytes.
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
    /// Groups of hosts that serve the same objects.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// Request fields that change no response, as the operator declares.
    pub plain_fields: Vec<PlainField>,
    /// True if clients that accept WebP get smaller variants of images.
    pub images: bool,
}
