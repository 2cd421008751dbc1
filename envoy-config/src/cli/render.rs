//! `longhaul render FILE --out DIR`: the files, to be read, reviewed, or mounted elsewhere.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::filters::FilterOptions;
use super::{ConfigFile, Outcome, access_log, fail, load_or_refuse, print};
use crate::config::{Acme, Cache};
use crate::render::NearSockets;
use crate::run::{Generation, Level, RunContext, filters, say, write_tree};

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
    #[command(flatten)]
    filters: FilterOptions,
    /// Log requests, one JSON object a line, to this file; - for stderr
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,
}

pub(super) fn command(arguments: &Arguments) -> Outcome {
    let loaded = load_or_refuse(&arguments.config.file)?;
    let out = absolute(&arguments.out);
    let filters = match filters(&loaded.settings, &arguments.filters.0) {
        Ok(filters) => filters,
        Err(error) => return fail(&error.to_string()),
    };
    let root = arguments.root.as_ref().map_or_else(|| out.clone(), absolute);
    let machine = RunContext {
        kept: root.join("kept"),
        root,
        filters,
        dns_ready: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), READY_PORT),
        resolver: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), RESOLVER_PORT),
        near: NearSockets::CUSTOMARY,
        renewals: None,
        access_log: access_log(arguments.access_log.as_deref()),
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
                "{}, set by `cache.dir`, does not exist on this machine. Create it where Envoy runs, writable for Envoy. Without it Envoy starts and caches nothing. `longhaul run` creates it",
                dir.display()
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
    match write_tree(&out, &generation.tree, None) {
        Ok(written) if written.changed.is_empty() => print(&format!("{}: nothing changed\n", out.display())),
        Ok(written) => print(&format!("{}: wrote {}\n", out.display(), written.changed.join(", "))),
        Err(error) => fail(&error.to_string()),
    }
}

fn absolute(path: &PathBuf) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.clone())
}
