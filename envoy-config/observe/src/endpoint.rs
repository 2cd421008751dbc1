//! The places where the children of a run respond to it.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::unix_http::{self, NoPage, TIMEOUT};

/// A socket with pages of Envoy or CoreDNS. In JSON it is a string.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Endpoint {
    /// An address on loopback: the admin interface of a run of version 0.x before `listen.admin` was cut.
    Tcp(SocketAddr),
    /// A Unix socket in the private folder of the run.
    Unix(PathBuf),
}

impl Endpoint {
    /// Returns the page at `path`, such as `/server_info`.
    pub fn page(&self, path: &str) -> Result<String, NoPage> {
        match self {
            Self::Tcp(socket) => page_at(*socket, path).ok_or(NoPage::Absent),
            Self::Unix(socket) => unix_http::get(socket, path),
        }
    }

    /// Returns the status of the response at `path`. None: it did not come within `patience`. A run listens at Unix sockets
    /// alone.
    pub fn status(&self, path: &str, patience: Duration) -> Option<u16> {
        match self {
            Self::Tcp(_) => None,
            Self::Unix(socket) => unix_http::status(socket, path, patience),
        }
    }

    /// Returns true if Envoy responds and serves, or the one that it takes over from.
    pub fn serves(&self) -> bool {
        let info = self.page("/server_info").ok().and_then(|text| serde_json::from_str(&text).ok());
        info.is_some_and(|info| serves(&info))
    }

    /// Sends an order to Envoy. Returns true if Envoy accepts it. A run takes orders at its Unix socket alone.
    pub fn order(&self, path: &str) -> bool {
        matches!(self, Self::Unix(socket) if unix_http::post(socket, path))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(socket) => socket.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// Returns the page at `path` of the program on `socket`. None if there is none, or if the child does not respond in time.
pub(crate) fn page_at(socket: SocketAddr, path: &str) -> Option<String> {
    let mut response = agent().get(format!("http://{socket}{path}")).call().ok()?;
    (response.status() == 200).then(|| response.body_mut().read_to_string().ok()).flatten()
}

/// Returns the client for pages on loopback.
fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).proxy(None).http_status_as_error(false).build().into()
}

/// Returns true if the Envoy of this `/server_info` serves, or one that it takes over from.
pub(crate) fn serves(info: &serde_json::Value) -> bool {
    let epoch = info.pointer("/command_line_options/restart_epoch").and_then(serde_json::Value::as_u64);
    info.get("state").is_some_and(|state| state == "LIVE") || epoch.is_some_and(|epoch| epoch > 0)
}
