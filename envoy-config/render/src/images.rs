//! The program that recodes images: its configuration, and its place behind the cache.

use image_variants::Config;
use longhaul_config::Settings;
use longhaul_derive::Derived;
use serde::Serialize;

use super::artifacts::{Artifacts, ProgramSockets};
use super::engine::RenderError;

/// The name of the program's configuration in the tree.
pub const FILE: &str = "images.json";

/// The effort of the encoder, of 0 to 6. Effort 4 takes twice the time of 2, for a twentieth of the bytes.
const METHOD: u8 = 4;

/// The sockets as the templates render them.
#[derive(Debug, Serialize)]
pub(super) struct Images {
    program: String,
    origins: String,
    /// The prefix of the path of a variant.
    prefix: String,
    /// The header of a request for a variant.
    mark: &'static str,
}

impl Images {
    pub(super) fn of(sockets: &ProgramSockets) -> Self {
        Self {
            program: sockets.program.display().to_string(),
            origins: sockets.origins.display().to_string(),
            prefix: String::from_utf8_lossy(image_variants::key::PREFIX).into_owned() + "/",
            mark: image_variants::key::MARK,
        }
    }
}

/// Returns the sockets, if images are recoded on this box.
pub(super) fn sockets<'a>(
    settings: &Settings,
    derived: &Derived,
    artifacts: &'a Artifacts,
) -> Option<&'a ProgramSockets> {
    // The cache decides which requests are for variants.
    let is_cached = super::objects::is_on(settings, artifacts);
    artifacts.images.as_ref().filter(|_| derived.images.on && is_cached)
}

/// Returns the program's configuration.
pub(super) fn config(settings: &Settings, sockets: &ProgramSockets) -> Result<String, RenderError> {
    let (images, limits) = (&settings.images, &settings.limits.images);
    let config = Config {
        listen: sockets.program.clone(),
        origin: sockets.origins.clone(),
        metrics: settings.listen.image_metrics,
        jpeg_quality: images.quality,
        png_quality: images.png_quality,
        method: METHOD,
        min_bytes: images.min.0,
        max_bytes: images.max.0,
        pixels: limits.pixels.into(),
        workers: u16::try_from(limits.workers).unwrap_or(u16::MAX),
        memory_bytes: limits.memory.0,
        time_ms: u32::try_from(limits.time.as_millis()).unwrap_or(u32::MAX),
        exclude: images.exclude.iter().map(ToString::to_string).collect(),
    };
    Ok(format!("{}\n", serde_json::to_string_pretty(&config)?))
}
