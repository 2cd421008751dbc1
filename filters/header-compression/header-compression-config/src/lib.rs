//! The configuration of the header-compression filter: `longhaul` writes this type, and the filter reads it.

use serde::{Deserialize, Serialize};

/// The configuration as written. A key with its default value is not written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The end of the pipe that this is.
    pub role: Role,
    /// The number of clients that one worker remembers, from 1 to 4096. Each costs up to 150 KiB. A ground should
    /// remember as many as its remotes together.
    #[serde(default = "default_clients", skip_serializing_if = "is_default_clients")]
    pub clients: u32,
    /// The mark that identifies a client. The remote decides; a ground ignores it.
    #[serde(default, skip_serializing_if = "ClientKey::is_default")]
    pub client: ClientKey,
}

/// An end of the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Next to the clients: compresses requests.
    Remote,
    /// On the wired side: compresses responses.
    Ground,
}

/// The mark that identifies a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientKey {
    /// An address. The connections of a browser share their past, but so do all users behind one NAT.
    #[default]
    Address,
    /// A connection. For remotes whose clients share addresses and must share nothing else.
    Connection,
}

impl ClientKey {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// [`Config::clients`] where it is not written: 75 MiB at most.
pub const CLIENTS: u32 = 512;

/// The most bytes that one client costs a worker.
pub const CLIENT_BYTES: u64 = 150 << 10;

fn default_clients() -> u32 {
    CLIENTS
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_default_clients(clients: &u32) -> bool {
    *clients == CLIENTS
}

/// A refused configuration; the message names the place and an example.
#[derive(Debug, thiserror::Error)]
#[error(
    "header-compression: configuration refused at {0}; expected for example \
     {{\"role\": \"remote\", \"clients\": 512, \"client\": \"address\"}}"
)]
pub struct ConfigError(String);

impl Config {
    /// The configuration of `role` with every default.
    #[must_use]
    pub fn of(role: Role) -> Self {
        Self { role, clients: CLIENTS, client: ClientKey::default() }
    }

    /// Reads a configuration.
    ///
    /// # Errors
    /// Malformed JSON, an unknown key, a value of another type, or `clients` out of range.
    pub fn from_json(json: &[u8]) -> Result<Self, ConfigError> {
        let config: Self = serde_json::from_slice(json)
            .map_err(|error| ConfigError(format!("line {}, column {}: {error}", error.line(), error.column())))?;
        match config.clients {
            0 => Err(ConfigError("`clients`: it must be at least 1".to_owned())),
            1..=MOST_CLIENTS => Ok(config),
            more => {
                Err(ConfigError(format!("`clients`: {more} is more than the {MOST_CLIENTS} that fit into a worker")))
            }
        }
    }
}

/// The most clients: each costs up to [`CLIENT_BYTES`], and Envoy gives a worker's module 1 GiB.
pub const MOST_CLIENTS: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_needs_its_role_and_nothing_else() {
        let config = Config::from_json(br#"{"role": "remote"}"#).unwrap();
        assert_eq!(config, Config { role: Role::Remote, clients: 512, client: ClientKey::Address });
        let config = Config::from_json(br#"{"role": "ground", "clients": 9, "client": "connection"}"#).unwrap();
        assert_eq!(config, Config { role: Role::Ground, clients: 9, client: ClientKey::Connection });
        let written = serde_json::to_vec(&config).unwrap();
        assert_eq!(Config::from_json(&written).unwrap(), config);
        let of_defaults = Config::of(Role::Remote);
        assert_eq!(serde_json::to_string(&of_defaults).unwrap(), r#"{"role":"remote"}"#);
        assert_eq!(Config::from_json(br#"{"role":"remote"}"#).unwrap(), of_defaults);
    }

    #[test]
    fn errors_are_named_with_their_place() {
        for (json, expected) in [
            ("", "line 1, column 0"),
            ("{}", "missing field `role`"),
            ("{\"role\": \"edge\"}", "unknown variant `edge`"),
            ("{\"role\": \"remote\",\n \"clients\": \"x\"}", "line 2, column 15"),
            ("{\"role\": \"remote\", \"cleints\": 3}", "unknown field `cleints`"),
            ("{\"role\": \"remote\", \"clients\": 0}", "at least 1"),
            ("{\"role\": \"remote\", \"clients\": 4097}", "4097 is more than the 4096"),
            ("{\"role\": \"remote\", \"clients\": -1}", "invalid value"),
        ] {
            let message = Config::from_json(json.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(expected), "{json}: {message}");
            assert!(message.contains("expected for example"), "{message}");
        }
    }
}
