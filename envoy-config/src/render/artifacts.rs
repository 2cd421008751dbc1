//! What rendering needs to know of the machine, found out by whoever calls it.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Places and facts of the machine the rendered files will be used on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifacts {
    /// Where the tree will stand, absolute: Envoy opens the files it names by this path.
    pub root: PathBuf,
    /// A folder that outlives restarts, absolute: the addresses of known origins are kept here.
    pub state: PathBuf,
    /// The url-rewrite filter. None leaves it out: pages pass unchanged and the proxy's own URLs answer 403.
    pub url_rewrite: Option<WasmModule>,
    /// PEM bundle that origins' certificates are checked against ([`Artifacts::DEBIAN_CA_BUNDLE`] on Debian).
    pub trusted_ca: PathBuf,
    /// Every address of this host. With a listener on a wildcard address each of them is a way back to ourselves;
    /// `proxy.addresses` and the addresses under `listen` are known without being listed.
    pub local_addresses: Vec<IpAddr>,
    /// Where origins' names are asked: the resolver of ours that leaves refused addresses out of answers. None asks
    /// `upstream.resolvers` themselves; then an answer that mixes a dead address with a refused one leads past the guard.
    pub resolver: Option<SocketAddr>,
    /// Where requests are logged.
    pub access_log: AccessLog,
}

impl Artifacts {
    /// Debian's bundle of certificate authorities.
    pub const DEBIAN_CA_BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";
}

/// A filter as built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WasmModule {
    /// Where it is now.
    pub path: PathBuf,
    /// SHA-256 of its bytes, lower-case hex. The copy Envoy loads is named by it: Envoy re-reads a module only when the
    /// file name or the configuration changes.
    pub sha256: String,
}

/// Where requests are logged, one JSON object a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessLog {
    /// Nowhere.
    Off,
    /// With Envoy's own messages.
    Stderr,
    /// To a file Envoy reopens on SIGUSR1.
    File(PathBuf),
}
