//! The facts of the machine that rendering needs. The caller finds them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Places and facts of the machine the rendered files will be used on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifacts {
    /// Where the tree will stand, absolute: Envoy opens the files it names by this path.
    pub root: PathBuf,
    /// A folder that outlives restarts, absolute: the addresses of known origins are kept here.
    pub state: PathBuf,
    /// The filters that were found. A filter without a module is left out, and so is the cache without cache-admission.
    pub modules: Modules,
    /// PEM bundle that origins' certificates are checked against ([`Artifacts::DEBIAN_CA_BUNDLE`] on Debian).
    pub trusted_ca: PathBuf,
    /// Every address of this host. With a listener on a wildcard address each of them is a way back to ourselves;
    /// `proxy.addresses` and the addresses under `listen` are known without being listed.
    pub local_addresses: Vec<IpAddr>,
    /// The resolver for the names of origins: this box's CoreDNS, which leaves refused addresses out of responses. None:
    /// `upstream.resolvers` themselves. Then a response that mixes a dead address with a refused one bypasses the guard.
    pub resolver: Option<SocketAddr>,
    /// Where a remote's own processes meet; used with no other role.
    pub near: NearSockets,
    /// The folder that a file is moved into whenever a certificate or key was renewed (`longhaul run` does so). None: the
    /// folder of each certificate, for an Envoy that runs on rendered files alone. There a renewed file must be moved into
    /// place: Envoy does not notice one that is overwritten.
    pub renewals: Option<PathBuf>,
    /// Where requests are logged.
    pub access_log: AccessLog,
}

impl Artifacts {
    /// The folder whose moved files make Envoy read `file` again.
    pub(super) fn watched_for(&self, file: &Path) -> String {
        let folder = self.renewals.as_deref().or_else(|| file.parent()).unwrap_or(Path::new("/"));
        folder.display().to_string()
    }

    /// Debian's bundle of certificate authorities.
    pub const DEBIAN_CA_BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";
}

/// Loopback sockets that the processes of a remote meet at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NearSockets {
    /// Connections held here, by `longhaul run`, keep others open to the ground.
    pub hold: SocketAddr,
    /// Connections held here, one a worker, keep the pipe open.
    pub hold_pipe: SocketAddr,
    /// CoreDNS asks the ground's resolver here, over TCP.
    pub dns: SocketAddr,
    /// The pipe is led into a tunnel of a ground that dials here.
    pub dialled: SocketAddr,
}

impl NearSockets {
    /// Where they are in files that `longhaul render` writes; `longhaul run` takes free ones.
    pub const CUSTOMARY: Self =
        Self { hold: loopback(8154), hold_pipe: loopback(8155), dns: loopback(8156), dialled: loopback(8157) };
}

const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// Built filters, by [`super::Filter::name`].
pub type Modules = BTreeMap<&'static str, WasmModule>;

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
