//! The configuration of the filter, as the proxy's configuration file has it.

use serde::{Deserialize, Serialize};

use crate::limits::{LEAST, MOST};

/// The filter's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// New names that one client may request at once, and per minute.
    pub per_client: u32,
}

/// The reason why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The configuration is not JSON of this form.
    #[error("name-budget: the configuration is refused: {0}")]
    Json(#[from] serde_json::Error),
    /// The budget is out of range.
    #[error("name-budget: per_client is {0}, expected {LEAST} to {MOST}")]
    Range(u32),
}

impl Config {
    /// Reads JSON. Refuses unknown keys and a budget out of range.
    pub fn from_json(json: &[u8]) -> Result<Self, Refused> {
        let config: Self = serde_json::from_slice(json)?;
        if (LEAST..=MOST).contains(&config.per_client) { Ok(config) } else { Err(Refused::Range(config.per_client)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_and_values_out_of_range_are_refused() {
        assert_eq!(Config::from_json(br#"{"per_client":600}"#).unwrap().per_client, 600);
        for refused in [r#"{"per_client":63}"#, r#"{"per_client":1301}"#, r#"{"per_client":600,"x":1}"#, "{}", ""] {
            assert!(Config::from_json(refused.as_bytes()).is_err(), "{refused}");
        }
    }
}
