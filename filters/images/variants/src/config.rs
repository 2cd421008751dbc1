//! The configuration of the program `longhaul-images`. `longhaul` writes it, and the program reads it.

use std::net::SocketAddr;
use std::path::PathBuf;

use http_semantics::authority;
use serde::{Deserialize, Serialize};

/// The configuration, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The Unix socket on which the program serves Envoy.
    pub listen: PathBuf,
    /// Envoy's Unix socket for requests to origins.
    pub origin: PathBuf,
    /// The socket of the metrics.
    pub metrics: Option<SocketAddr>,
    /// The quality of WebP for JPEG images, 1 to 100.
    pub jpeg_quality: u8,
    /// The quality of WebP for PNG images. None: lossless.
    pub png_quality: Option<u8>,
    /// The effort of the encoder, 0 to 6.
    pub method: u8,
    /// Smaller images are left.
    pub min_bytes: u64,
    /// Larger images are left.
    pub max_bytes: u64,
    /// Images with more pixels are left.
    pub pixels: u64,
    /// Images that are recoded at a time.
    pub workers: u16,
    /// The address space of the process that recodes one image, in bytes.
    pub memory_bytes: u64,
    /// The longest time for one image, in milliseconds.
    pub time_ms: u32,
    /// Hosts, with all names below them, whose images are left. Lower case.
    pub exclude: Vec<String>,
}

impl Config {
    /// Returns true if images of `authority` (`host` or `host:port`) are left.
    pub fn excludes(&self, authority: &str) -> bool {
        excludes(self.exclude.iter().map(String::as_str), authority)
    }
}

/// Returns true if images of `authority` (`host` or `host:port`) are left, because its host is one of `names` or below
/// one.
pub fn excludes<'a>(mut names: impl Iterator<Item = &'a str>, authority: &str) -> bool {
    let authority = authority.to_ascii_lowercase();
    let host = authority::host(&authority);
    names.any(|name| host.strip_suffix(name).is_some_and(|start| start.is_empty() || start.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_excluded_with_all_below_it() {
        let config = Config {
            listen: "/a".into(),
            origin: "/b".into(),
            metrics: None,
            jpeg_quality: 75,
            png_quality: None,
            method: 4,
            min_bytes: 1024,
            max_bytes: 1 << 20,
            pixels: 8_000_000,
            workers: 2,
            memory_bytes: 1 << 27,
            time_ms: 2000,
            exclude: vec!["maps.example".to_owned()],
        };
        for (authority, expected) in [
            ("maps.example", true),
            ("Tiles.Maps.Example:8080", true),
            ("roadmaps.example", false),
            ("maps.example.org", false),
            ("", false),
        ] {
            assert_eq!(config.excludes(authority), expected, "{authority}");
        }
    }
}
