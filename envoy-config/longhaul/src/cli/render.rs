//! `longhaul render FILE --out DIR`: the files, to be read, reviewed, or mounted elsewhere. With `--for`, the resources of
//! another control plane.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use longhaul_config::{Acme, Cache, Loaded};
use longhaul_derive::{HostFacts, derive};
use longhaul_render::{
    ControlPlane, Emptied, Gateway, GatewayError, NearSockets, OBJECTS_FILE, ProgramSockets, RenderedTree, Weighing,
};

use super::{ConfigFile, Outcome, REFUSED, access_log, fail, load_or_refuse, print};
use crate::run::{Destination, Generation, Level, RunContext, SERVICE_FOLDER, filters, native_place, say, write_tree};

/// CoreDNS's own default port for `ready`. (`longhaul run` takes a free one.)
const READY_PORT: u16 = 8181;
/// Where Envoy asks CoreDNS for origins' addresses. (Likewise.)
const RESOLVER_PORT: u16 = 8153;

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    config: ConfigFile,
    /// The folder to write into; created if it does not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The folder from which Envoy will read the files, if it is not the output folder
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Log requests, one JSON object a line, to this file; - for stderr
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,
    /// Write the resources with which this control plane runs url-rewrite in its own gateway
    #[arg(long = "for", value_name = "CONTROL_PLANE", conflicts_with_all = ["root", "access_log"])]
    control_plane: Option<Plane>,
    /// The form of the filter in the gateway
    #[arg(long, value_name = "ENGINE", default_value = "wasm", requires = "control_plane")]
    engine: GatewayEngine,
    /// The gateway of --for
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "default/eg", requires = "control_plane", value_parser = gateway_name)]
    gateway: (String, String),
    /// A listener of the gateway that serves pages; repeat the option for more
    #[arg(long = "listener", value_name = "NAME", default_value = "http", requires = "control_plane")]
    listeners: Vec<String>,
    /// The image with the filter, as `make wasm-image` builds it; with --engine native, the image of `make image`
    #[arg(long, value_name = "REFERENCE", requires = "control_plane")]
    image: Option<String>,
}

/// The control planes, as `--for` names them.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Plane {
    /// Envoy Gateway
    EnvoyGateway,
    /// Istio
    Istio,
}

/// The forms of the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum GatewayEngine {
    /// A wasm module, in its sandbox
    Wasm,
    /// The native module, in Envoy's own process
    Native,
}

impl Plane {
    /// Returns the control plane, and an image that nobody can pull: the name of one's own registry is not known here. None: the
    /// control plane cannot place that form.
    fn with(self, engine: GatewayEngine) -> Option<(ControlPlane, &'static str)> {
        const WASM: &str = concat!("registry.example.org/longhaul/url-rewrite:", env!("CARGO_PKG_VERSION"));
        const NATIVE: &str = concat!("registry.example.org/longhaul:", env!("CARGO_PKG_VERSION"));
        match (self, engine) {
            (Self::EnvoyGateway, GatewayEngine::Wasm) => Some((ControlPlane::EnvoyGateway, WASM)),
            (Self::EnvoyGateway, GatewayEngine::Native) => Some((ControlPlane::EnvoyGatewayNative, NATIVE)),
            (Self::Istio, GatewayEngine::Wasm) => Some((ControlPlane::Istio, WASM)),
            (Self::Istio, GatewayEngine::Native) => None,
        }
    }
}

/// Reads `NAMESPACE/NAME`.
fn gateway_name(text: &str) -> Result<(String, String), String> {
    let label = |part: &str| {
        let byte = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        !part.is_empty() && part.bytes().all(byte)
    };
    match text.split_once('/') {
        Some((namespace, name)) if label(namespace) && label(name) => Ok((namespace.to_owned(), name.to_owned())),
        _ => Err("expected NAMESPACE/NAME in lower case, for example `sites/web`".to_owned()),
    }
}

pub(super) fn command(arguments: &Arguments) -> Outcome {
    let loaded = load_or_refuse(&arguments.config.file)?;
    let out = absolute(&arguments.out);
    if let Some(plane) = arguments.control_plane {
        return for_control_plane(&loaded, plane, arguments, &out);
    }
    let filters = match filters(&loaded.settings) {
        Ok(filters) => filters,
        Err(error) => return fail(&error.to_string()),
    };
    let root = arguments.root.as_ref().map_or_else(|| out.clone(), absolute);
    let log = access_log(arguments.access_log.as_deref());
    let machine = RunContext {
        kept: root.join("kept"),
        admin: root.join("admin.sock"),
        dns_metrics: None,
        told: None,
        root: root.clone(),
        filters,
        native: native_place(None, &root),
        dns_ready: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), READY_PORT),
        resolver: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), RESOLVER_PORT),
        near: NearSockets::CUSTOMARY,
        images: ProgramSockets::below(&root, "images"),
        objects: ProgramSockets::below(&root, "objects"),
        renewals: None,
        access_log: Destination::wished(&loaded.settings.log, log.as_ref(), Path::new(SERVICE_FOLDER)),
        weighing: Weighing::default(),
        emptied: Emptied::default(),
        marks_pages: false,
    };
    let generation = match Generation::of(loaded, &machine) {
        Ok(generation) => generation,
        Err(error) => return fail(&error.to_string()),
    };
    if let Cache::Disk { dir, .. } = &generation.settings.cache
        && !dir.is_dir()
    {
        say(
            Level::Warning,
            &format!(
                "{}, set by `cache.dir`, does not exist on this machine. Create it where longhaul-objects runs, writable for it. Without it, nothing is cached. `longhaul run` creates it",
                dir.display()
            ),
        );
    }
    if generation.settings.cache.is_on_disk() {
        let config = root.join(OBJECTS_FILE);
        say(
            Level::Warning,
            &format!(
                "`longhaul run` caches objects. Without it, start `longhaul-objects {}` beside Envoy",
                config.display()
            ),
        );
    }
    if generation.settings.acme.as_ref().is_some_and(Acme::has_webroot) {
        say(
            Level::Warning,
            &format!(
                "`longhaul run` serves the files of `tls.acme.webroot`. Without it, serve them on {}, or write `acme: {{ forward: ADDRESS:PORT }}`",
                NearSockets::CUSTOMARY.challenges
            ),
        );
    }
    write(&out, &generation.tree)
}

/// Writes the resources of another control plane.
fn for_control_plane(loaded: &Loaded, plane: Plane, arguments: &Arguments, out: &Path) -> Outcome {
    let Some((plane, example)) = plane.with(arguments.engine) else {
        eprintln!(
            "error: --engine native: Istio's WasmPlugin takes wasm modules only. Omit --engine, or write --for envoy-gateway"
        );
        return Err(REFUSED);
    };
    let (namespace, name) = arguments.gateway.clone();
    let image = arguments.image.clone().unwrap_or_else(|| example.to_owned());
    let site = Gateway { namespace, name, listeners: arguments.listeners.clone(), image };
    let derived = derive(&loaded.settings, &HostFacts::of_this_machine());
    let tree = match site.render(&loaded.settings, &derived, plane) {
        Ok(tree) => tree,
        Err(error @ GatewayError::Render(_)) => return fail(&error.to_string()),
        Err(error) => {
            eprintln!("error: {}: {error}", arguments.config.file.display());
            return Err(REFUSED);
        }
    };
    if arguments.image.is_none() {
        say(Level::Warning, &format!("the image {example} is an example. Name yours with --image"));
    }
    write(out, &tree)
}

fn write(out: &Path, tree: &RenderedTree) -> Outcome {
    match write_tree(out, tree) {
        Ok(written) if written.changed.is_empty() => print(&format!("{}: nothing changed\n", out.display())),
        Ok(written) => print(&format!("{}: wrote {}\n", out.display(), written.changed.join(", "))),
        Err(error) => fail(&error.to_string()),
    }
}

fn absolute(path: &PathBuf) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.clone())
}
