//! The filter's configuration. `longhaul` writes it with this type, and the filter reads it with the same type.

use serde::{Deserialize, Serialize};

use crate::read_store;

/// The configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The end of the link that this filter is.
    pub role: Role,
    /// The cluster for the filter's own requests. At the remote it leads to the ground. At the ground it leads to
    /// origins, through the cache and the guard.
    pub cluster: String,
    /// Round-trip time of the link without queueing, in milliseconds.
    pub rtt_ms: u64,
    /// Rate of the downlink in bytes a second.
    pub down: u64,
    /// Rate of the uplink in bytes a second.
    pub up: u64,
    /// Memory for objects that all workers of the remote share, in bytes.
    #[serde(default = "default_store_bytes")]
    pub store_bytes: u64,
    /// Bytes of a response that the ground's proxy buffers for one stream. The proxy resets a stream that exceeds it.
    #[serde(default = "default_buffer_bytes")]
    pub buffer_bytes: usize,
    /// True if objects of pages are sent before browsers request them. Otherwise, the filter only encodes and decodes bodies.
    #[serde(default = "default_flights")]
    pub flights: bool,
    /// True if the remote has a cache on disk.
    #[serde(default)]
    pub caches: bool,
    /// The name of that cache for the ground, 16 hexadecimal digits. None: the worker's name for its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_name: Option<String>,
    /// True if pages cross the link as differences from other pages of their sites.
    #[serde(default)]
    pub deltas: bool,
    /// The cluster of the resolver that the ground tells which hosts a page names. None: it tells nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<String>,
}

/// An end of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The end beside the clients. It keeps objects and serves them.
    Remote,
    /// The end on the wired side. It finds, fetches and sends objects.
    Ground,
}

/// The default of [`Config::store_bytes`].
pub const STORE_BYTES: u64 = 64 << 20;

fn default_store_bytes() -> u64 {
    STORE_BYTES
}

/// Returns the initial window of an HTTP/2 stream (RFC 9113, 6.9.2), the smallest that Envoy accepts.
fn default_buffer_bytes() -> usize {
    65_535
}

fn default_flights() -> bool {
    true
}

/// A refused configuration: the place, and what was expected.
#[derive(Debug, thiserror::Error)]
#[error(
    "bundling: configuration refused at {0}; expected for example \
     {{\"role\": \"remote\", \"cluster\": \"pipe\", \"rtt_ms\": 600, \"down\": 2500000, \"up\": 625000}}"
)]
pub struct ConfigError(String);

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    /// Returns the place in the text, or the key, and what was expected.
    pub fn from_json(json: &[u8]) -> Result<Self, ConfigError> {
        let config: Self = serde_json::from_slice(json)
            .map_err(|error| ConfigError(format!("line {}, column {}: {error}", error.line(), error.column())))?;
        let must = [
            ("cluster", !config.cluster.is_empty(), "it must not be empty"),
            ("names", config.names.as_deref() != Some(""), "it must not be empty"),
            ("down", config.down > 0, "it must be at least 1"),
            ("up", config.up > 0, "it must be at least 1"),
            ("rtt_ms", config.rtt_ms <= MOST_RTT_MS, "more than a minute is no link"),
            (
                "cache_name",
                config.cache_name.as_deref().is_none_or(is_store_name),
                "it must have 16 hexadecimal digits",
            ),
            ("store_bytes", config.store_bytes <= MOST_STORE_BYTES, "more than 4 GiB is refused"),
        ];
        match must.into_iter().find(|(_, holds, _)| !holds) {
            Some((key, _, why)) => Err(ConfigError(format!("`{key}`: {why}"))),
            None => Ok(config),
        }
    }
}

fn is_store_name(name: &str) -> bool {
    read_store(name).is_some()
}

const MOST_RTT_MS: u64 = 60_000;
const MOST_STORE_BYTES: u64 = 4 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = r#"{"role": "ground", "cluster": "fetch", "rtt_ms": 600, "down": 2500000, "up": 625000}"#;

    #[test]
    fn a_configuration_reads_back_as_it_was_written() {
        let config = Config::from_json(LEAST.as_bytes()).unwrap();
        assert_eq!((config.store_bytes, config.buffer_bytes), (64 << 20, 65_535));
        assert_eq!(Config::from_json(&serde_json::to_vec(&config).unwrap()).unwrap(), config);
    }

    #[test]
    fn a_bad_configuration_is_refused_with_its_place_and_the_expected_value() {
        for (from, to, said) in [
            ("ground", "edge", "unknown variant `edge`"),
            ("rtt_ms", "rtt", "unknown field `rtt`"),
            ("\"fetch\"", "\"\"", "`cluster`: it must not be empty"),
            ("\"cluster\"", "\"names\": \"\", \"cluster\"", "`names`: it must not be empty"),
            ("2500000", "0", "`down`: it must be at least 1"),
            ("625000", "0", "`up`: it must be at least 1"),
            ("\"cluster\"", "\"cache_name\": \"x\", \"cluster\"", "`cache_name`: it must have 16"),
            ("600", "600000", "`rtt_ms`: more than a minute"),
        ] {
            let message = Config::from_json(LEAST.replace(from, to).as_bytes()).unwrap_err().to_string();
            assert!(message.contains(said) && message.contains("expected for example"), "{message}");
        }
    }
}
