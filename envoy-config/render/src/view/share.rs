//! Equal shares of the link, as a filter of Envoy.

use std::path::{Path, PathBuf};

use longhaul_config::{Role, Settings};
use longhaul_derive::Derived;
use serde::Serialize;

use super::transport::envoy;
use crate::Artifacts;

/// The runtime key of the limit, in KiB a second. Envoy demands one.
const RATE_KEY: &str = "longhaul.share_rate";
/// The runtime key that says that the ground reads the names of clients in front of their bytes. It is a percentage.
pub const NAMES_KEY: &str = "longhaul.names_clients";

/// The text of an IPv6 address (RFC 5952) whose first 64 bits are in the first or the second group. A subscriber has all
/// addresses behind them. No two subscribers have the same text, and one with zeros may have up to three. An IPv4 address
/// does not match.
const SUBSCRIBER: &str = "^(?:((?:[0-9a-f]+:){4}).*|([0-9a-f:]*?::(?:[0-9a-f]+:)*?)(?:[0-9a-f]+:){0,3}[0-9a-f]*)$";

/// Returns the socket of a remote at which `longhaul run` asks whether the ground reads the names of clients.
#[must_use]
pub fn names_socket(admin: &Path) -> PathBuf {
    admin.with_file_name("names.sock")
}

/// The limit of the direction in which this box sends over the link.
#[derive(Debug, Serialize)]
pub(super) struct Share {
    /// The key of Envoy's filter for this direction.
    limit: &'static str,
    /// The bucket of all streams. Envoy keeps a bucket with its interval for as long as it runs, so its name has both.
    bucket: String,
    kib_per_second: u32,
    fill_interval: String,
    comment: String,
    rate_key: &'static str,
    names_key: &'static str,
    subscriber: &'static str,
    /// The name of the only remote of a ground, for its access log. Behind the hop `share`, the address is the client's.
    remote: String,
    /// The Unix socket of the question whether the ground reads the names.
    names_socket: String,
    /// The Unix socket between the hop of a ground that shares the link and the hops behind it.
    socket: String,
}

impl Share {
    pub(super) fn of(settings: &Settings, derived: &Derived, artifacts: &Artifacts) -> Option<Self> {
        let limit = derived.neighbours.sent_by(&settings.role)?;
        let fill_interval = envoy(limit.fill_interval);
        Some(Self {
            limit: if matches!(settings.role, Role::Remote(_)) { "request_limit" } else { "response_limit" },
            bucket: format!("link-{}-{fill_interval}", limit.kib_per_second),
            kib_per_second: limit.kib_per_second,
            comment: limit.formula.clone(),
            fill_interval,
            rate_key: RATE_KEY,
            names_key: NAMES_KEY,
            subscriber: SUBSCRIBER,
            remote: match &settings.role {
                Role::Ground(ground) => ground.remotes.first().map(ToString::to_string).unwrap_or_default(),
                Role::Remote(_) | Role::Edge => String::new(),
            },
            names_socket: names_socket(&artifacts.admin).display().to_string(),
            socket: artifacts.admin.with_file_name("shared.sock").display().to_string(),
        })
    }
}
