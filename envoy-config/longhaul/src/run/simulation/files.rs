//! The rendered files of a configuration, and the words in them that the children of the simulation read.

use longhaul_render::RenderedTree;

use super::super::envoy::BOOTSTRAP;
use super::super::generation::COREFILE;
use super::orders::{Config, Flaw};

/// A child refuses a file with this word.
pub(super) const REFUSED: &str = "nonsense";
/// The configuration of the program beside Envoy.
pub(super) const SIDE: &str = "objects.json";

/// Renders a configuration. CoreDNS reports on the port `ready` that it is ready.
pub(super) fn tree_of(config: Config, ready: u32) -> RenderedTree {
    let Config { bootstrap, route, names, side, flaw } = config;
    let with = |flaws: &[Flaw]| if flaws.contains(&flaw) { REFUSED } else { "" };
    let cluster = |name: &str| format!("- \"@type\": C\n  name: {name}\n");
    let clusters = format!("# {}\n{}{}", with(&[Flaw::Clusters]), cluster("origins"), cluster(&format!("c{route}")));
    let mut tree = RenderedTree::default()
        .with(BOOTSTRAP, format!("bootstrap {bootstrap} {}", with(&[Flaw::Bootstrap, Flaw::Deadly])))
        .with("cds.yaml", clusters)
        .with("rds/http.yaml", format!("cluster c{route}"))
        .with("lds.yaml", format!("listener {route} {}", with(&[Flaw::Listeners])))
        .with(COREFILE, format!("ready {ready} names {names} {}", with(&[Flaw::Names])));
    if side > 0 {
        tree = tree.with(SIDE, format!("objects {side}"));
    }
    // A file that comes and goes.
    if route == 1 { tree.with("rds/more.yaml", "cluster origins".to_owned()) } else { tree }
}

/// Returns the cluster of a route.
pub(super) fn cluster_of(route: &str) -> Option<&str> {
    route.strip_prefix("cluster ")
}

/// Returns the clusters of a file.
pub(super) fn clusters_of(file: &str) -> impl Iterator<Item = &str> {
    file.lines().filter_map(|line| line.strip_prefix("  name: "))
}

/// Returns the port on which CoreDNS reports that it is ready.
pub(super) fn port_of(corefile: &str) -> Option<u32> {
    corefile.strip_prefix("ready ")?.split(' ').next()?.parse().ok()
}
