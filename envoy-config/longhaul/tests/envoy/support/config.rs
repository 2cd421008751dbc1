//! A configuration for a test: YAML as an operator would write it, checked and rendered like one.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::{env, fs};

use longhaul_config::AccessLog;
use longhaul_config::load_text;
use longhaul_derive::{HostFacts, derive};
use longhaul_render::{
    Artifacts, Emptied, NativeModule, NearSockets, ProgramSockets, RenderedTree, WasmModule, Weighing, render,
};
use sha2::{Digest, Sha256};

use super::envoy::skip;
use super::loopback::Block;

/// The ports every test's box listens on, at [`Config::proxy`].
pub(crate) const HTTP: u16 = 8080;
pub(crate) const TLS: u16 = 8443;

/// One box, not yet running.
pub(crate) struct Config {
    pub(crate) block: Block,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) yaml: String,
    pub(crate) url_rewrite: Option<WasmModule>,
    pub(crate) name_budget: Option<WasmModule>,
    pub(crate) trusted_ca: PathBuf,
    pub(crate) local_addresses: Vec<IpAddr>,
    pub(crate) is_native: bool,
}

impl Config {
    /// A box that reaches its own block and nothing else private. `more` is added at top level.
    pub(crate) fn new(more: &str) -> Self {
        Self::with(Block::new(), "[80, 443, 8081]", "", more)
    }

    /// As [`Self::new`], with `upstream.ports` and further lines under `upstream`.
    pub(crate) fn with(block: Block, ports: &str, upstream: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let proxy = block.at(1);
        let yaml = format!(
            "role: edge\n\
             link: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\n\
             proxy: {{ addresses: [{proxy}] }}\n\
             listen: {{ http: '{proxy}:{HTTP}', tls: '{proxy}:{TLS}', dns: off, metrics: off, intercept: none }}\n\
             upstream:\n  resolvers: ['{dns}:5300']\n  ports: {ports}\n  allow_private: [{net}]\n{upstream}{more}",
            dns = block.at(2),
            net = block.net(),
        );
        Self {
            block,
            folder,
            yaml,
            url_rewrite: None,
            name_budget: built("LONGHAUL_NAME_BUDGET", "name_budget.wasm"),
            trusted_ca: PathBuf::from(Artifacts::DEBIAN_CA_BUNDLE),
            local_addresses: Vec::new(),
            is_native: env::var_os("LONGHAUL_ENGINE").is_none_or(|engine| engine != "wasm"),
        }
    }

    /// Adds the url-rewrite filter. If it is not built, says so and returns None.
    pub(crate) fn with_filter(mut self) -> Option<Self> {
        self.url_rewrite = url_rewrite();
        if self.url_rewrite.is_none() {
            skip("no url_rewrite.wasm: set LONGHAUL_URL_REWRITE, or `make build`");
        }
        self.url_rewrite.is_some().then_some(self)
    }

    /// Returns the url-rewrite filter of the box. It is left out where a test neither requests it nor is about the cache: it
    /// takes Envoy seconds to load.
    fn filter(&self) -> Option<WasmModule> {
        let cached = self.yaml.contains("cache: { dir");
        self.url_rewrite.clone().or_else(|| url_rewrite().filter(|_| cached))
    }

    /// Changes the configuration's text. The replaced text must be there.
    pub(crate) fn edit(&mut self, from: &str, to: &str) {
        assert!(self.yaml.contains(from), "{from:?} is not in\n{}", self.yaml);
        self.yaml = self.yaml.replace(from, to);
    }

    pub(crate) fn proxy(&self) -> IpAddr {
        self.block.at(1)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn render(&self) -> RenderedTree {
        render_yaml(&self.yaml, self.folder.path(), &self.artifacts())
    }

    /// Has wasm modules, whichever engine the other tests have.
    pub(crate) fn with_wasm(mut self) -> Self {
        self.is_native = false;
        self
    }

    /// The native module, unless these tests run with wasm: `LONGHAUL_ENGINE=wasm`.
    fn native(&self) -> Option<NativeModule> {
        let WasmModule { path, sha256 } =
            built("LONGHAUL_NATIVE_FILTERS", "longhaul_filters.so").filter(|_| self.is_native)?;
        Some(NativeModule { path, sha256, calls: NativeModule::calls_below(self.folder.path()).unwrap() })
    }

    pub(crate) fn artifacts(&self) -> Artifacts {
        Artifacts {
            root: self.path("rendered"),
            state: self.path("state"),
            admin: self.path("admin.sock"),
            modules: [("url-rewrite", self.filter()), ("name-budget", self.name_budget.clone())]
                .into_iter()
                .filter_map(|(name, module)| Some((name, module?)))
                .collect(),
            native: self.native(),
            host_name: "box.example.org".to_owned(),
            trusted_ca: self.trusted_ca.clone(),
            local_addresses: self.local_addresses.clone(),
            resolver: None,
            near: NearSockets::CUSTOMARY,
            images: ProgramSockets::below(self.folder.path(), "images"),
            objects: ProgramSockets::below(self.folder.path(), "objects"),
            cache_name: None,
            renewals: None,
            access_log: AccessLog::File(self.path("access.log")),
            weighing: Weighing::default(),
            emptied: Emptied::default(),
            marks_pages: true,
        }
    }
}

pub(crate) fn render_yaml(yaml: &str, folder: &Path, artifacts: &Artifacts) -> RenderedTree {
    let yaml = &with_cache(yaml, folder);
    let loaded = match load_text(&folder.join("longhaul.yaml"), yaml.to_owned()) {
        Ok(loaded) => loaded,
        Err(error) => panic!("the test's configuration is refused: {error}\n{yaml}"),
    };
    let derived = derive(&loaded.settings, &HostFacts::of_this_machine());
    render(&loaded.settings, &derived, artifacts).expect("rendering")
}

/// Gives a box the cache that it has by default, in the folder of the test.
fn with_cache(yaml: &str, folder: &Path) -> String {
    // A remote has no cache on disk.
    if yaml.contains("\ncache:") || yaml.contains("role: remote") {
        return yaml.to_owned();
    }
    let cache = folder.join("cache");
    fs::create_dir_all(&cache).expect("a folder for the cache");
    format!("{yaml}\ncache: {{ dir: '{}', size: 64mib }}\n", cache.display())
}

fn url_rewrite() -> Option<WasmModule> {
    built("LONGHAUL_URL_REWRITE", "url_rewrite.wasm")
}

/// A filter that every box has. None if it is not built.
fn built(variable: &str, file: &str) -> Option<WasmModule> {
    let named = env::var_os(variable).map(PathBuf::from);
    let built = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/dist").join(file);
    named.into_iter().chain([built]).find(|path| path.is_file()).map(module)
}

/// A filter with the hash of its bytes.
pub(crate) fn module(path: PathBuf) -> WasmModule {
    let sha256 = hex::encode(Sha256::digest(fs::read(&path).expect("the filter is read")));
    WasmModule { path, sha256 }
}
