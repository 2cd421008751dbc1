//! The configuration, as the proxy's file has it.

use serde::{Deserialize, Serialize};

use crate::plain::PlainField;

/// Where a filter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// In the outer hop, before its cache: clients' requests.
    Client,
    /// In the hop `fetch`, before its cache: requests that fill, and requests of our own.
    Fetch,
    /// In the inner hop, behind the caches: the judge.
    Origin,
}

/// When a URL is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Admit {
    /// After one response has shown that it may be stored.
    Learned,
    /// At first sight: an uncacheable response costs a second request at its origin.
    First,
}

/// A filter's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where it stands.
    pub at: Position,
    /// When a URL is admitted.
    pub admit: Admit,
    /// Request fields that change no response, on the operator's word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plain_fields: Vec<PlainField>,
    /// The longest body that the cache takes.
    pub object_bytes: u64,
}

/// What the configuration says of requests.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// When a URL is admitted.
    pub admit: Admit,
    /// Fields that change no response, besides those that no site needs to name.
    pub plain: &'a [PlainField],
}

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
#[error("cache-admission: the configuration is refused: {0}")]
pub struct Refused(#[from] serde_json::Error);

impl Config {
    /// What it says of requests.
    pub fn rules(&self) -> Rules<'_> {
        Rules { admit: self.admit, plain: &self.plain_fields }
    }

    /// Reads JSON; unknown keys are refused.
    pub fn from_json(json: &[u8]) -> Result<Self, Refused> {
        Ok(serde_json::from_slice(json)?)
    }
}
