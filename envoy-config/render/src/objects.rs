//! The program that caches objects: its configuration, and its place before the inner hop.

use std::path::PathBuf;

use longhaul_config::{Bytes, Cache, Settings};
use object_config::{Config, ReaderConfig};
use serde::Serialize;

use super::artifacts::{Artifacts, ProgramSockets};
use super::engine::RenderError;

/// The name of the program's configuration in the tree.
pub const FILE: &str = "objects.json";

/// The folder of the program below `cache.dir`. Other releases have their files beside it.
const FOLDER: &str = "objects";
/// The share of the cache that one object may use: one part in so many. One download can then not empty the cache.
const OBJECT_SHARE: u64 = 16;
/// The largest object that the reader in Envoy serves, in bytes. It holds a whole one in memory.
const MOST_READ_BYTES: u64 = 1 << 20;
/// The sockets as the templates render them.
#[derive(Debug, Serialize)]
pub(super) struct Objects {
    program: String,
    origins: String,
    /// The header of a request whose response may be stored.
    mark: &'static str,
    /// The header of a filter's own request.
    own: &'static str,
    /// The header of a request that validates the stored response.
    valid: &'static str,
    /// The header of a request that bypasses the program.
    past: &'static str,
    /// The header of a response that says how the cache served it.
    outcome: &'static str,
    /// The header of a response that is not stored.
    private: &'static str,
}

impl Objects {
    /// Returns None unless the program caches objects on this box.
    pub(super) fn of(settings: &Settings, artifacts: &Artifacts) -> Option<Self> {
        let sockets = sockets(settings, artifacts)?;
        Some(Self {
            program: sockets.program.display().to_string(),
            origins: sockets.origins.display().to_string(),
            mark: object_config::MARK,
            own: object_config::OWN,
            valid: object_config::VALID,
            past: object_config::PAST,
            outcome: object_config::OUTCOME,
            private: object_config::PRIVATE,
        })
    }
}

/// Returns true if the program caches objects on this box.
pub(super) fn is_on(settings: &Settings, artifacts: &Artifacts) -> bool {
    sockets(settings, artifacts).is_some()
}

fn sockets<'a>(settings: &Settings, artifacts: &'a Artifacts) -> Option<&'a ProgramSockets> {
    artifacts.objects.as_ref().filter(|_| folder(settings).is_some())
}

/// Returns the folder of the program's store. None unless the file wants the program.
pub fn folder(settings: &Settings) -> Option<PathBuf> {
    match &settings.cache {
        Cache::Disk { dir, .. } => Some(dir.join(FOLDER)),
        _ => None,
    }
}

/// Returns the configuration of the reader in Envoy. None unless the file wants the program.
pub(super) fn reader(settings: &Settings, memory: Bytes, images: bool) -> Option<ReaderConfig> {
    let Cache::Disk { plain_fields, .. } = &settings.cache else { return None };
    Some(ReaderConfig {
        folder: folder(settings)?,
        hot_bytes: memory.0,
        object_bytes: MOST_READ_BYTES,
        // One object is always served.
        sent_bytes: memory.0.max(MOST_READ_BYTES),
        plain_fields: plain_fields.clone(),
        images,
    })
}

/// Returns the program's configuration. None unless it caches objects on this box. `memory` is that of small objects.
pub(super) fn config(
    settings: &Settings,
    artifacts: &Artifacts,
    memory: Bytes,
    images: bool,
) -> Result<Option<String>, RenderError> {
    let (Some(sockets), Some(folder), Cache::Disk { size, plain_fields, .. }) =
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
        hot_bytes: memory.0,
        object_bytes: size.0 / OBJECT_SHARE,
        groups: settings.cache.groups().iter().map(|one| one.group.clone()).collect(),
        plain_fields: plain_fields.clone(),
        images,
    };
    Ok(Some(format!("{}\n", serde_json::to_string_pretty(&config)?)))
}
