//! The facts about the machine that rendering needs. The caller collects them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use longhaul_config::{AccessLog, Role, Settings};
use serde::Serialize;

use crate::weighing::Weighing;

/// How often a run has emptied each pool of connections over the link, by the name of its cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Emptied {
    /// The connections for clients' bytes.
    pub warm: u32,
    /// The connections of requests.
    pub pipe: u32,
}

/// Paths and facts of the machine on which the rendered files will be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifacts {
    /// The absolute path of the rendered tree. Envoy opens the files in it by this path.
    pub root: PathBuf,
    /// The absolute path of a folder that outlives restarts. It keeps the resolved addresses of known origins.
    pub state: PathBuf,
    /// The Unix socket of Envoy's admin interface. A relative path starts from the folder in which Envoy runs.
    pub admin: PathBuf,
    /// The modules of the filters that were found, by [`super::Filter::name`]. A filter without a module is left out.
    pub modules: BTreeMap<&'static str, WasmModule>,
    /// The native module, if it runs the filters. None: the wasm modules do.
    pub native: Option<NativeModule>,
    /// The host name. It names this box where `id` is not set.
    pub host_name: String,
    /// The PEM bundle that verifies origins' certificates ([`Artifacts::DEBIAN_CA_BUNDLE`] on Debian).
    pub trusted_ca: PathBuf,
    /// Every address of this host. If a listener has a wildcard address, a connection to any of them comes back to this
    /// box. Addresses in `proxy.addresses` and under `listen` need not be listed.
    pub local_addresses: Vec<IpAddr>,
    /// The resolver for the names of origins: this box's CoreDNS, which leaves refused addresses out of responses.
    ///
    /// None: Envoy queries `upstream.resolvers` itself. Then a response that mixes a dead address with a refused one
    /// bypasses the guard.
    pub resolver: Option<SocketAddr>,
    /// The sockets at which the processes of this box meet.
    pub near: NearSockets,
    /// The sockets of the program that recodes images. None: there is no program, and images stay as they are.
    pub images: Option<ProgramSockets>,
    /// The sockets of the program that caches objects. None: there is no program, and nothing is cached.
    pub objects: Option<ProgramSockets>,
    /// The name by which the ground remembers what the cache of this remote holds, 16 hexadecimal digits. None: each start of
    /// Envoy has another name.
    pub cache_name: Option<String>,
    /// The folder that a file is moved into after each renewal of a certificate or key. `longhaul run` does so.
    ///
    /// None: Envoy watches the folder of each certificate, for use without `longhaul run`. Move a renewed file into
    /// place there, because Envoy does not notice an overwritten file.
    pub renewals: Option<PathBuf>,
    /// The destination of the access log.
    pub access_log: AccessLog,
    /// The state of a run on which shares of the link depend.
    pub weighing: Weighing,
    /// How often this run has emptied the pools of connections over the link.
    pub emptied: Emptied,
    /// True if `longhaul run` reads Envoy's stderr. Then Envoy writes a line there for each page, without its name.
    pub marks_pages: bool,
}

impl Artifacts {
    /// Returns the folder to watch: a file moved into it makes Envoy read `file` again.
    pub(super) fn watched_for(&self, file: &Path) -> String {
        let folder = self.renewals.as_deref().or_else(|| file.parent()).unwrap_or(Path::new("/"));
        folder.display().to_string()
    }

    /// Returns true if Envoy writes a line for each page. A ground does not, because its log sees compressed response
    /// headers, without the content type. Its remotes see all pages.
    pub(super) fn logs_pages(&self, settings: &Settings) -> bool {
        self.marks_pages && settings.role.meets_clients()
    }

    /// Returns true if Envoy writes the bytes of each client, for groups and for `log.who`.
    pub(super) fn bills(&self, settings: &Settings) -> bool {
        let wanted = !settings.clients.is_empty() || settings.log.who;
        self.marks_pages && wanted && matches!(settings.role, Role::Remote(_))
    }

    /// The bundle of certificate authorities on Debian.
    pub const DEBIAN_CA_BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";
}

/// The Unix sockets between Envoy and a program beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramSockets {
    /// The program's, for Envoy's requests.
    pub program: PathBuf,
    /// Envoy's, for the program's requests to origins.
    pub(crate) origins: PathBuf,
    /// The program's, for its counters.
    pub metrics: PathBuf,
}

impl ProgramSockets {
    /// The longest path of a Unix socket, in bytes: `sun_path` of unix(7) without its end.
    const LONGEST: usize = 107;

    /// Returns the sockets of the program `name` in `folder`. None if their paths are too long for sockets.
    pub fn below(folder: &Path, name: &str) -> Option<Self> {
        let socket = |end: &str| folder.join(format!("{name}{end}.sock"));
        let this = Self { program: socket(""), origins: socket("-origins"), metrics: socket("-metrics") };
        let fits = |path: &PathBuf| path.as_os_str().len() <= Self::LONGEST;
        let all_fit = [&this.program, &this.origins, &this.metrics].into_iter().all(fits);
        all_fit.then_some(this)
    }
}

/// The loopback sockets at which the processes of a box meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NearSockets {
    /// `longhaul run` holds connections to this socket. They keep other connections open to the ground.
    pub hold: SocketAddr,
    /// `longhaul run` holds one connection per worker to this socket. They keep the pipe open.
    pub hold_pipe: SocketAddr,
    /// CoreDNS queries the ground's resolver at this socket, over TCP.
    pub dns: SocketAddr,
    /// Lookups as streams of HTTP/2. At a remote, CoreDNS sends them to Envoy here. At a ground, Envoy sends them to
    /// CoreDNS here.
    pub lookups: SocketAddr,
    /// `longhaul run` serves the files of `tls.acme.webroot` at this socket.
    pub challenges: SocketAddr,
}

impl NearSockets {
    /// The sockets in files that `longhaul render` writes. `longhaul run` chooses free ones.
    pub const CUSTOMARY: Self = Self {
        hold: loopback(8154),
        hold_pipe: loopback(8155),
        dns: loopback(8156),
        lookups: loopback(8157),
        challenges: loopback(8158),
    };
}

const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// The dynamic module with every filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeModule {
    /// The path of the built module.
    pub path: PathBuf,
    /// The SHA-256 of its bytes, as in [`WasmModule`].
    pub sha256: String,
    /// The Unix socket through which filters' own requests reach a worker.
    pub calls: PathBuf,
}

impl NativeModule {
    /// Returns the socket in `folder`. None if its path is too long for a socket.
    pub fn calls_below(folder: &Path) -> Option<PathBuf> {
        let socket = folder.join("calls.sock");
        (socket.as_os_str().len() <= ProgramSockets::LONGEST).then_some(socket)
    }
}

/// The module that runs a filter.
#[derive(Debug)]
pub(super) enum Module<'a> {
    Native(&'a NativeModule),
    Wasm(&'a WasmModule),
}

/// The wasm module of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WasmModule {
    /// The path of the built module.
    pub path: PathBuf,
    /// The SHA-256 of its bytes, in lower-case hex. The copy that Envoy loads has it in its name, because Envoy reads a
    /// module again only if the file name or the configuration changes.
    pub sha256: String,
}
