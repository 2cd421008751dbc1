//! The program that caches objects: its configuration, and its place before the inner hop.

use std::path::PathBuf;

use longhaul_config::{Cache, CacheEngine, Settings};
use object_config::Config;
use serde::Serialize;

use super::artifacts::{Artifacts, ProgramSockets};
use super::engine::RenderError;

/// The name of the program's configuration in the tree.
pub const FILE: &str = "objects.json";

/// The folder of the program below `cache.dir`. Envoy's cache has its files beside it.
const FOLDER: &str = "objects";
/// The share of the cache that one object may use: one part in so many. One download can then not empty the cache.
const OBJECT_SHARE: u64 = 16;
/// The memory for small objects that many clients request, as a part of the cache on disk: one part in so many.
const HOT_PART: u64 = 16;
/// The most memory for them, in bytes.
const MOST_HOT_BYTES: u64 = 64 << 20;

/// The sockets as the templates render them.
#[derive(Debug, Serialize)]
pub(super) struct Objects {
    program: String,
    origins: String,
    /// The header of a request whose response may be stored.
    mark: &'static str,
}

impl Objects {
    /// Returns None unless the program caches objects on this box.
    pub(super) fn of(settings: &Settings, artifacts: &Artifacts) -> Option<Self> {
        let sockets = sockets(settings, artifacts)?;
        Some(Self {
            program: sockets.program.display().to_string(),
            origins: sockets.origins.display().to_string(),
            mark: object_config::MARK,
        })
    }
}

fn sockets<'a>(settings: &Settings, artifacts: &'a Artifacts) -> Option<&'a ProgramSockets> {
    artifacts.objects.as_ref().filter(|_| folder(settings).is_some() && settings.role.changes_pages())
}

/// Returns the folder of the program's store. None unless the file wants the program.
pub fn folder(settings: &Settings) -> Option<PathBuf> {
    match &settings.cache {
        Cache::Disk { dir, engine: CacheEngine::Objects, .. } => Some(dir.join(FOLDER)),
        _ => None,
    }
}

/// Returns the program's configuration. None unless it caches objects on this box.
pub(super) fn config(settings: &Settings, artifacts: &Artifacts) -> Result<Option<String>, RenderError> {
    let (Some(sockets), Some(folder), Cache::Disk { size, .. }) =
        (sockets(settings, artifacts), folder(settings), &settings.cache)
    else {
        return Ok(None);
    };
    let config = Config {
        listen: sockets.program.clone(),
        origin: sockets.origins.clone(),
        metrics: sockets.metrics.clone(),
        folder,
        disk_bytes: size.0,
        hot_bytes: (size.0 / HOT_PART).min(MOST_HOT_BYTES),
        object_bytes: size.0 / OBJECT_SHARE,
    };
    Ok(Some(format!("{}\n", serde_json::to_string_pretty(&config)?)))
}
