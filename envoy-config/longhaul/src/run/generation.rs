//! A configuration that runs or may run: settings, derived values and all rendered files.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use longhaul_config::{EngineWish, Loaded, Settings};
use longhaul_derive::{Derived, HostFacts, derive};
use longhaul_render::{
    self, Artifacts, CorefileContext, Emptied, NearSockets, ProgramSockets, RenderError, RenderedTree, Weighing,
};

use super::access_log::Destination;
use super::engine::{Engine, NativePlace, NoNative};
use super::events::{Inputs, certificate_files};
use super::locate::{self, FilterPaths, LocateError};
use super::log::Level;
use super::private::TRUE_ADDRESSES;
use super::say;

/// The folder of the tree with the hashes of certificates and keys. Each file is put in place by a rename, which makes
/// Envoy read the certificates again ([`Artifacts::renewals`]).
pub(super) const RENEWALS: &str = "renewals";
/// The name of the Corefile in the tree.
pub(crate) const COREFILE: &str = "Corefile";
/// The file of the names that follow, in the folder that outlives restarts.
const FOLLOWERS: &str = "followers";
/// The file of remembered DNS responses in the folder that outlives restarts.
const REMEMBERED: &str = "names.bin";

/// The facts of this machine and this run that rendering needs.
#[derive(Debug, Clone)]
pub(crate) struct RunContext {
    /// The root of the rendered tree.
    pub(crate) root: PathBuf,
    /// The folder that outlives restarts.
    pub(crate) kept: PathBuf,
    /// See [`Artifacts::admin`].
    pub(crate) admin: PathBuf,
    /// See [`CorefileContext::metrics`].
    pub(crate) dns_metrics: Option<PathBuf>,
    /// See [`CorefileContext::told`].
    pub(crate) told: Option<PathBuf>,
    /// The filters that were found.
    pub(crate) filters: FilterPaths,
    /// The parts of native filters on this machine.
    pub(crate) native: NativePlace,
    /// The socket on which CoreDNS reports that it is ready.
    pub(crate) dns_ready: SocketAddr,
    /// The socket on which Envoy queries CoreDNS for the addresses of origins. It stays the same for a whole run,
    /// because a change would make Envoy drain.
    pub(crate) resolver: SocketAddr,
    /// The sockets between the processes of this box. They stay the same for a whole run, for the same reason.
    pub(crate) near: NearSockets,
    /// See [`Artifacts::images`].
    pub(crate) images: Option<ProgramSockets>,
    /// See [`Artifacts::objects`].
    pub(crate) objects: Option<ProgramSockets>,
    /// See [`Artifacts::renewals`].
    pub(crate) renewals: Option<PathBuf>,
    pub(crate) access_log: Destination,
    /// See [`Artifacts::weighing`].
    pub(crate) weighing: Weighing,
    /// See [`Artifacts::emptied`].
    pub(crate) emptied: Emptied,
    /// True if Envoy's stderr is read.
    pub(crate) marks_pages: bool,
}

/// Settings and everything derived from them.
#[derive(Debug, Clone)]
pub(crate) struct Generation {
    pub(crate) settings: Settings,
    pub(crate) derived: Derived,
    pub(crate) tree: RenderedTree,
    artifacts: Artifacts,
    /// The engine that runs the filters.
    pub(crate) engine: Engine,
    /// The destination of the access log.
    pub(super) access_log: Destination,
    /// The inputs at the time of rendering.
    pub(super) inputs: Inputs,
    /// The socket on which its CoreDNS reports that it is ready.
    pub(super) dns_ready: SocketAddr,
    resolver: SocketAddr,
    near: NearSockets,
    dns_metrics: Option<PathBuf>,
    remembered: PathBuf,
    pushed: PathBuf,
    followers: PathBuf,
    told: Option<PathBuf>,
}

/// The reason why rendering failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GenerateError {
    /// The filter or the authorities are missing.
    #[error(transparent)]
    Locate(#[from] LocateError),
    /// The native engine cannot run.
    #[error(transparent)]
    Engine(#[from] NoNative),
    /// A template failed.
    #[error(transparent)]
    Render(#[from] RenderError),
}

impl Generation {
    /// Renders everything. Reads the hash of the filter and the facts of the machine, and writes nothing.
    pub(crate) fn of(loaded: Loaded, machine: &RunContext) -> Result<Self, GenerateError> {
        let Loaded { settings, read, .. } = loaded;
        // Hashed before use, so that a file that changes meanwhile differs later and is read again.
        let inputs =
            Inputs::of(&settings, &read, machine.filters.values().chain(&machine.native.module).map(PathBuf::as_path));
        let derived = derive(&settings, &HostFacts::of_this_machine());
        let engine = Engine::choose(settings.engine, &machine.native)?;
        let artifacts = Artifacts {
            root: machine.root.clone(),
            state: machine.kept.clone(),
            admin: machine.admin.clone(),
            modules: locate::wasm_modules(&machine.filters)?,
            native: engine.native.clone(),
            host_name: locate::host_name(),
            trusted_ca: locate::trusted_ca()?,
            local_addresses: inputs.addresses().to_vec(),
            // Other remotes resolve only a ground given by name, because their own DNS queries through the ground.
            resolver: settings.role.reaches_origins().then_some(machine.resolver),
            near: machine.near,
            images: machine.images.clone(),
            objects: machine.objects.clone(),
            cache_name: super::cache_name::of(&settings),
            renewals: machine.renewals.clone(),
            access_log: machine.access_log.log.clone(),
            weighing: machine.weighing.clone(),
            emptied: machine.emptied,
            marks_pages: machine.marks_pages,
        };
        let mut tree = longhaul_render::render(&settings, &derived, &artifacts)?;
        if let (Some(_), Some(hashes)) = (&machine.renewals, inputs.hashes_of(&certificate_files(&settings))) {
            tree = tree.with(format!("{RENEWALS}/certificates"), hashes);
        }
        let (resolver, near, dns_metrics) = (machine.resolver, machine.near, machine.dns_metrics.clone());
        let (told, access_log) = (machine.told.clone(), machine.access_log.clone());
        let dns_ready = machine.dns_ready;
        let remembered = machine.kept.join(REMEMBERED);
        let this = Self {
            settings,
            derived,
            tree,
            artifacts,
            engine,
            access_log,
            inputs,
            dns_ready,
            resolver,
            near,
            dns_metrics,
            remembered,
            pushed: CorefileContext::pushed_socket(&machine.admin),
            followers: machine.kept.join(FOLLOWERS),
            told,
        };
        Ok(this.ready_at(machine.dns_ready))
    }

    /// Returns the same files with the shares of other weights.
    pub(super) fn weighed(&self, weighing: Weighing) -> Result<RenderedTree, RenderError> {
        let artifacts = Artifacts { weighing, ..self.artifacts.clone() };
        self.tree.with_weights(&self.settings, &self.derived, &artifacts)
    }

    /// Returns the same files for pools that are emptied once more.
    pub(super) fn with_emptied_pools(&self, emptied: Emptied) -> Result<RenderedTree, RenderError> {
        let artifacts = Artifacts { emptied, ..self.artifacts.clone() };
        self.tree.with_emptied_pools(&self.settings, &self.derived, &artifacts)
    }

    /// Returns true if the native module runs the filters.
    pub(super) fn is_native(&self) -> bool {
        self.artifacts.native.is_some()
    }

    /// Says which engine runs the filters, if it is not the usual one.
    pub(super) fn say_engine(&self) {
        if self.settings.engine != EngineWish::Auto || !self.is_native() {
            say(Level::Info, &format!("{} filters: {}", self.engine.name(), self.engine.why));
        }
    }

    /// Returns SHA-256 of its configuration file, in hex.
    pub(super) fn config_sha256(&self) -> String {
        self.inputs.hash_of(&self.settings.file)
    }

    /// Returns the same generation with CoreDNS reporting on `socket` that it is ready.
    pub(super) fn ready_at(mut self, socket: SocketAddr) -> Self {
        self.dns_ready = socket;
        let context = CorefileContext {
            ready: socket,
            metrics: self.dns_metrics.as_deref(),
            resolver: self.resolver,
            near_dns: self.near.dns,
            lookups: self.near.lookups,
            remembered: &self.remembered,
            pushed: &self.pushed,
            followers: &self.followers,
            local_addresses: self.inputs.addresses(),
            told: self.told.as_deref(),
            true_addresses: self.told.is_some().then_some(Path::new(TRUE_ADDRESSES)),
        };
        let corefile = context.corefile(&self.settings);
        self.tree = self.tree.with(COREFILE, corefile);
        self
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use longhaul_config::load;

    use super::*;

    #[test]
    fn an_edit_made_while_the_file_is_being_applied_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("longhaul.yaml");
        let list = folder.path().join("domains.txt");
        let config = "link: { rtt: 600ms, down: 20mbit, up: 5mbit }\nproxy: { addresses: [198.51.100.12] }\n\
                      upstream: { resolvers: [192.0.2.53] }\ndns: { domains: [domains.txt] }\n";
        fs::write(&file, config).unwrap();
        fs::write(&list, "example.org\n").unwrap();
        let socket = "127.0.0.1:1".parse().unwrap();
        let machine = RunContext {
            root: folder.path().to_owned(),
            kept: folder.path().to_owned(),
            admin: folder.path().join("admin.sock"),
            dns_metrics: None,
            told: None,
            filters: FilterPaths::new(),
            native: NativePlace { module: Err(String::new()), envoy: None, copies: None, calls: None, barred: None },
            dns_ready: socket,
            resolver: socket,
            near: NearSockets::CUSTOMARY,
            images: None,
            objects: None,
            renewals: None,
            access_log: Destination::default(),
            weighing: Weighing::default(),
            emptied: Emptied::default(),
            marks_pages: false,
        };
        let loaded = load(&file).unwrap();
        // Both files change after they are read and before they are applied.
        fs::write(&file, format!("{config}limits: {{ connections: 7 }}\n")).unwrap();
        fs::write(&list, "example.net\n").unwrap();
        let generation = Generation::of(loaded, &machine).unwrap();
        let names = [&list, &file].map(|path| path.display().to_string());
        assert_eq!(generation.inputs.again().changed_since(&generation.inputs), names);
        let unchanged = Generation::of(load(&file).unwrap(), &machine).unwrap();
        assert_eq!(unchanged.inputs.again().changed_since(&unchanged.inputs), Vec::<String>::new());
    }
}
