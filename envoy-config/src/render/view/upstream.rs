//! Origins: those on the map, and the resolver cache for the rest.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::Serialize;

use super::{Socket, short_hash};
use crate::config::Settings;
use crate::render::Artifacts;

/// The names of `upstream.map` that are reached at one address: one cluster for http and one for https.
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
        // A dot or colon in a name would become a level of Envoy's statistics, and Prometheus would see half a name.
        id: format!("{}_{}", socket.ip().to_string().replace(['.', ':'], "-"), socket.port()),
        socket: socket.into(),
        names,
    };
    by_socket.into_iter().map(one).collect()
}

/// Envoy refuses a resolver cache whose settings differ from those of a live one of the same name, so other settings
/// have another name.
pub(super) fn dns_cache_name(resolvers: &[SocketAddr]) -> String {
    format!("origins_{}", short_hash(&format!("{resolvers:?}")))
}

/// The resolvers that Envoy queries for origins' addresses.
pub(super) fn resolvers(settings: &Settings, artifacts: &Artifacts) -> Vec<SocketAddr> {
    artifacts.resolver.map_or_else(|| settings.upstream.resolvers.clone(), |resolver| vec![resolver])
}
