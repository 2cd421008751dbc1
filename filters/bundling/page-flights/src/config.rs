//! The filter's configuration: one type for whoever writes it and for the filter that reads it.

use serde::{Deserialize, Serialize};

/// The configuration as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Which end of the link this is.
    pub role: Role,
    /// The proxy's cluster for our own requests: at the near end the one that leads to the far end, there the one that
    /// leads to origins, through the cache and the guard.
    pub cluster: String,
    /// The link's round trip without queueing, in milliseconds.
    pub rtt_ms: u64,
    /// Its rate towards clients, in bytes a second.
    pub down: u64,
    /// Its rate from clients, in bytes a second.
    pub up: u64,
    /// Memory that the near end's workers together keep objects in, in bytes.
    #[serde(default = "default_store_bytes")]
    pub store_bytes: u64,
    /// Bytes of one answer that the far end's proxy lets wait: it ends a stream of which more does.
    #[serde(default = "default_buffer_bytes")]
    pub buffer_bytes: usize,
}

/// An end of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Next to the clients: keeps objects and answers with them.
    Remote,
    /// On the wired side: finds, fetches and sends them.
    Ground,
}

/// [`Config::store_bytes`] unless another value is written.
pub const STORE_BYTES: u64 = 64 << 20;

fn default_store_bytes() -> u64 {
    STORE_BYTES
}

/// The smallest window of a stream there is.
fn default_buffer_bytes() -> usize {
    65_535
}

/// A configuration that is refused; says where and what was expected.
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
    /// Says where in the text, or which key, and what was expected.
    pub fn from_json(json: &[u8]) -> Result<Self, ConfigError> {
        let config: Self = serde_json::from_slice(json)
            .map_err(|error| ConfigError(format!("line {}, column {}: {error}", error.line(), error.column())))?;
        let must = [
            ("cluster", !config.cluster.is_empty(), "it must not be empty"),
            ("down", config.down > 0, "it must be at least 1"),
            ("up", config.up > 0, "it must be at least 1"),
            ("rtt_ms", config.rtt_ms <= MOST_RTT_MS, "more than a minute is no link"),
            ("store_bytes", config.store_bytes <= MOST_STORE_BYTES, "more than 4 GiB is refused"),
        ];
        match must.into_iter().find(|(_, holds, _)| !holds) {
            Some((key, _, why)) => Err(ConfigError(format!("`{key}`: {why}"))),
            None => Ok(config),
        }
    }
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
    fn what_cannot_be_meant_is_refused_with_its_place_and_what_was_expected() {
        for (from, to, said) in [
            ("ground", "edge", "unknown variant `edge`"),
            ("rtt_ms", "rtt", "unknown field `rtt`"),
            ("\"fetch\"", "\"\"", "`cluster`: it must not be empty"),
            ("2500000", "0", "`down`: it must be at least 1"),
            ("625000", "0", "`up`: it must be at least 1"),
            ("600", "600000", "`rtt_ms`: more than a minute"),
        ] {
            let message = Config::from_json(LEAST.replace(from, to).as_bytes()).unwrap_err().to_string();
            assert!(message.contains(said) && message.contains("expected for example"), "{message}");
        }
    }
}
