//! Certificates of the operator, and ACME challenges.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::names::Host;

/// A certificate of the operator, and the names for which it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Termination {
    /// The names, or addresses of the proxy itself, at least one. A name belongs to only one entry.
    pub names: Vec<Host>,
    /// PEM certificate chain, an absolute path.
    pub cert: PathBuf,
    /// PEM private key, an absolute path.
    pub key: PathBuf,
}

/// The treatment of ACME's HTTP-01 challenges for [`Proxy::secure_names`](super::Proxy::secure_names) (RFC 8555 section
/// 8.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acme {
    /// The program or folder with the responses.
    pub responses: ChallengeResponses,
    /// The entries of `tls.terminate` whose certificate or key does not exist yet, by their index in the file. Until both
    /// exist, TLS does not end here for their names, and no URL moves to them.
    pub awaited: BTreeMap<usize, Termination>,
    /// The socket that serves challenges and nothing else. `longhaul host` leads port 80 of other interfaces than the
    /// clients' to it. None: `off`.
    pub listen: Option<SocketAddr>,
}

impl Acme {
    /// Returns true if the responses lie in a folder.
    pub fn has_webroot(&self) -> bool {
        matches!(self.responses, ChallengeResponses::Webroot(_))
    }
}

/// The source of the responses to challenges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChallengeResponses {
    /// The folder, absolute, in which an ACME client writes `.well-known/acme-challenge/TOKEN`.
    Webroot(PathBuf),
    /// The address of an ACME client's own server.
    Forward(SocketAddr),
}
