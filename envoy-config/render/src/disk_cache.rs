//! The bounds of Envoy's disk cache, computed from the size that the operator configures.

use longhaul_config::units::Bytes;
use longhaul_config::{Cache, CacheEngine};
use serde::Serialize;

/// The bytes of cache per entry. An entry costs memory, so the number of entries is bounded. The mean web object is
/// some tens of kilobytes.
const BYTES_PER_ENTRY: u64 = 16 << 10;
/// The least number of entries.
const LEAST_ENTRIES: u64 = 64;
/// The share of the cache that one object may use: one part in so many. One download can then not empty the cache.
const OBJECT_SHARE: u64 = 16;
/// The largest object, in bytes. `cache_v2` holds in memory what it has not yet written to disk, so this bounds the
/// cost of a client.
const OBJECT_BYTES: u64 = 4 << 20;

/// The cache as the templates render it.
#[derive(Debug, Serialize)]
pub(super) struct DiskCache {
    dir: String,
    max_bytes: u64,
    max_entries: u64,
    max_object_bytes: u64,
}

impl DiskCache {
    /// Returns None without a disk cache.
    pub(super) fn of(cache: &Cache) -> Option<Self> {
        match cache {
            Cache::Off | Cache::Parents(_) | Cache::Disk { engine: CacheEngine::Objects, .. } => None,
            Cache::Disk { dir, size, engine: CacheEngine::Envoy { .. } } => Some(Self {
                dir: dir.display().to_string(),
                max_bytes: size.0,
                max_entries: (size.0 / BYTES_PER_ENTRY).max(LEAST_ENTRIES),
                max_object_bytes: object_bytes(*size),
            }),
        }
    }
}

/// Returns the size of the largest object that a cache of `size` stores, in bytes.
pub(super) fn object_bytes(size: Bytes) -> u64 {
    (size.0 / OBJECT_SHARE).min(OBJECT_BYTES)
}
