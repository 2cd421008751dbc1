//! Certificates, and the TLS connections that end here.

use std::collections::BTreeMap;
use std::net::IpAddr;

use longhaul_config::Host;
use longhaul_config::{Identity, Intercept, Settings};
use serde::Serialize;

use super::Bound;
use crate::Artifacts;

/// One entry of `tls.terminate`: one filter chain and one secret.
///
/// Both have the first name of the entry. A further name on the certificate, or a renewed certificate, then changes
/// neither the chain nor its connections.
#[derive(Debug, Serialize)]
pub(crate) struct Certificate {
    pub(crate) file: String,
    name: String,
    chain: String,
    key: String,
    /// The folder in which renewed files appear.
    dir: String,
    server_names: Vec<String>,
}

/// The TLS listener.
#[derive(Debug, Serialize)]
pub(super) struct TlsListener {
    sockets: Bound,
    /// The filter chain of each server name whose TLS ends here.
    chains: BTreeMap<String, String>,
    /// The addresses of the proxy. Our DNS gives them instead of the origins', so a connection to one says nothing about
    /// the address of its origin.
    own: Vec<IpAddr>,
    /// The chain for connections to the proxy's own address without a server name. None: they are passed on, and
    /// refused like every connection to this box itself.
    nameless: Option<Nameless>,
}

/// The filter chain for connections without a server name. A client sends none for a URL with an address, so such a
/// connection to the proxy's address is meant for the proxy.
#[derive(Debug, Serialize)]
struct Nameless {
    chain: String,
    /// The proxy's addresses. Empty if every connection is addressed to the proxy.
    addresses: Vec<IpAddr>,
}

pub(super) fn certificates(settings: &Settings, artifacts: &Artifacts) -> Vec<Certificate> {
    let entry = |(index, entry): (usize, &longhaul_config::Termination)| {
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
    /// Returns the certificate that one end of a pair presents to the other.
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
    pub(super) fn new(sockets: Bound, settings: &Settings, certificates: &[Certificate]) -> Self {
        let names = certificates.iter().flat_map(|c| c.server_names.iter().map(|n| (n.clone(), c.name.clone())));
        Self { sockets, chains: names.collect(), own: own(settings), nameless: nameless(settings, certificates) }
    }
}

/// Returns the chain for the proxy's address. Its certificate names the address, or else a name of the proxy.
fn nameless(settings: &Settings, certificates: &[Certificate]) -> Option<Nameless> {
    let own = &settings.proxy.secure_names;
    let serves = |wanted: fn(&Host) -> bool| {
        settings.terminate.iter().position(|entry| entry.names.iter().any(|name| wanted(name) && own.contains(name)))
    };
    let index = serves(|name| matches!(name, Host::Address(_))).or_else(|| serves(|_| true))?;
    let addresses = match settings.listen.intercept {
        Intercept::None => Vec::new(),
        Intercept::Redirect | Intercept::Tproxy => self::own(settings),
    };
    certificates.get(index).map(|certificate| Nameless { chain: certificate.name.clone(), addresses })
}

fn own(settings: &Settings) -> Vec<IpAddr> {
    let mut addresses = settings.proxy.addresses.clone();
    addresses.extend(settings.proxy.secure_names.iter().filter_map(|name| match name {
        Host::Address(address) => Some(*address),
        Host::Name(_) => None,
    }));
    addresses.sort();
    addresses.dedup();
    addresses
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
