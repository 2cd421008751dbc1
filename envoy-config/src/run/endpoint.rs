//! The places where the children of a run respond to it.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::probe::page_at;
use crate::unix_http::{self, NoPage};

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
    pub(crate) fn page(&self, path: &str) -> Result<String, NoPage> {
        match self {
            Self::Tcp(socket) => page_at(*socket, path).ok_or(NoPage::Absent),
            Self::Unix(socket) => unix_http::get(socket, path),
        }
    }

    /// Sends an order to Envoy. Returns true if Envoy accepts it. A run takes orders at its Unix socket alone.
    pub(super) fn order(&self, path: &str) -> bool {
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
