//! Certificates, and which TLS connections end here.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

use super::Socket;
use crate::config::names::Host;
use crate::config::{Identity, Intercept, Settings};
use crate::render::Artifacts;

/// One entry of `tls.terminate`: one filter chain, one secret.
///
/// Both are named after the first name of the entry, so that another name on the same certificate, or a renewed one,
/// changes neither the chain nor the connections on it.
#[derive(Debug, Serialize)]
pub(in super::super) struct Certificate {
    pub(in super::super) file: String,
    name: String,
    chain: String,
    key: String,
    /// Where renewed files appear.
    dir: String,
    server_names: Vec<String>,
}

/// The TLS listener.
#[derive(Debug, Serialize)]
pub(super) struct TlsListener {
    socket: Socket,
    /// Server name to chain, for every name that ends here.
    chains: BTreeMap<String, String>,
    /// Where a connection to our own address goes that names no server; none: it is refused like any other to ourselves.
    nameless: Option<Nameless>,
}

/// An address literal in a URL sends no server name: to our own address it means us.
#[derive(Debug, Serialize)]
struct Nameless {
    chain: String,
    /// Our addresses; empty where every connection was addressed to us.
    addresses: Vec<IpAddr>,
}

pub(super) fn certificates(settings: &Settings, artifacts: &Artifacts) -> Vec<Certificate> {
    let entry = |(index, entry): (usize, &crate::config::Termination)| {
        let name = entry.names.first().map_or_else(|| index.to_string(), file_safe);
        Certificate {
            file: format!("sds/{name}.yaml"),
            name,
            chain: entry.cert.display().to_string(),
            key: entry.key.display().to_string(),
            dir: artifacts.watched_for(&entry.cert),
            server_names: entry.names.iter().filter_map(server_name).collect(),
        }
    };
    settings.terminate.iter().enumerate().map(entry).collect()
}

impl Certificate {
    /// The one an end of a pair shows the other.
    pub(super) fn of_pair(identity: &Identity, artifacts: &Artifacts) -> Self {
        Self {
            file: "sds/pair.yaml".to_owned(),
            name: "pair".to_owned(),
            chain: identity.cert.display().to_string(),
            key: identity.key.display().to_string(),
            dir: artifacts.watched_for(&identity.cert),
            server_names: Vec::new(),
        }
    }
}

impl TlsListener {
    pub(super) fn new(socket: Socket, settings: &Settings, certificates: &[Certificate]) -> Self {
        let names = certificates.iter().flat_map(|c| c.server_names.iter().map(|n| (n.clone(), c.name.clone())));
        Self { socket, chains: names.collect(), nameless: nameless(settings, certificates) }
    }
}

/// The certificate for our address: one that bears it, else the one of our first name.
fn nameless(settings: &Settings, certificates: &[Certificate]) -> Option<Nameless> {
    let own = &settings.proxy.secure_names;
    let serves = |wanted: fn(&Host) -> bool| {
        settings.terminate.iter().position(|entry| entry.names.iter().any(|name| wanted(name) && own.contains(name)))
    };
    let index = serves(|name| matches!(name, Host::Address(_))).or_else(|| serves(|_| true))?;
    let addresses = match settings.listen.intercept {
        Intercept::None => Vec::new(),
        Intercept::Redirect | Intercept::Tproxy => {
            let mut addresses = settings.proxy.addresses.clone();
            addresses.extend(own.iter().filter_map(|name| match name {
                Host::Address(address) => Some(*address),
                Host::Name(_) => None,
            }));
            addresses.sort();
            addresses.dedup();
            addresses
        }
    };
    certificates.get(index).map(|certificate| Nameless { chain: certificate.name.clone(), addresses })
}

fn server_name(host: &Host) -> Option<String> {
    match host {
        Host::Name(name) => Some(name.to_string()),
        // RFC 6066: a server name is never an address.
        Host::Address(_) => None,
    }
}

fn file_safe(host: &Host) -> String {
    host.to_string()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' })
        .collect()
}
