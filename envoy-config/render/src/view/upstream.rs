//! Origins: the names in `upstream.map`, and the DNS cache for all others.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use longhaul_config::Settings;
use serde::Serialize;

use super::{Socket, short_hash};
use crate::Artifacts;

/// The names of `upstream.map` with the same address. They have one cluster for http and one for https.
#[derive(Debug, Serialize)]
pub(super) struct Mapped {
    id: String,
    socket: Socket,
    names: Vec<String>,
}

pub(super) fn mapped(settings: &Settings) -> Vec<Mapped> {
    let mut by_socket: BTreeMap<SocketAddr, Vec<String>> = BTreeMap::new();
    for (name, socket) in &settings.upstream.map {
        by_socket.entry(*socket).or_default().push(name.to_string());
    }
    let one = |(socket, names): (SocketAddr, Vec<String>)| Mapped {
        // A dot or a colon would start a new level in Envoy's statistics, and Prometheus would show half a name.
        id: format!("{}_{}", socket.ip().to_string().replace(['.', ':'], "-"), socket.port()),
        socket: socket.into(),
        names,
    };
    by_socket.into_iter().map(one).collect()
}

/// Returns the name of the DNS cache. It depends on the resolvers, because Envoy refuses a cache whose settings differ
/// from those of a live cache of the same name.
pub(super) fn dns_cache_name(resolvers: &[SocketAddr]) -> String {
    format!("origins_{}", short_hash(&format!("{resolvers:?}")))
}

/// The resolvers that Envoy queries for origins' addresses.
pub(super) fn resolvers(settings: &Settings, artifacts: &Artifacts) -> Vec<SocketAddr> {
    artifacts.resolver.map_or_else(|| settings.upstream.resolvers.clone(), |resolver| vec![resolver])
}
