//! What no client may reach through us: the table behind every refusal by address.
//!
//! A client chooses the host name, so it chooses the address: these ranges keep it from choosing the operator's own
//! network. They are matched against the address Envoy resolved, after resolution, so a public name that points inside
//! is caught like an address literal.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::Serialize;

use crate::config::Settings;

/// What is refused: IANA's special-purpose registries, and ranges that carry an IPv4 address in disguise. Documentation
/// ranges are reachable: nobody's network is there, and tests and examples live in them.
const REFUSED: &[&str] = &[
    "0.0.0.0/8",      // this host: Linux connects to itself
    "10.0.0.0/8",     // private, RFC 1918
    "100.64.0.0/10",  // carrier-grade NAT, RFC 6598
    "127.0.0.0/8",    // loopback
    "169.254.0.0/16", // link-local, among it cloud metadata
    "172.16.0.0/12",  // private, RFC 1918
    "192.0.0.0/24",   // protocol assignments, RFC 6890
    "192.88.99.0/24", // 6to4 relays, withdrawn
    "192.168.0.0/16", // private, RFC 1918
    "198.18.0.0/15",  // benchmarking, RFC 2544
    "224.0.0.0/4",    // multicast
    "240.0.0.0/4",    // reserved, and broadcast
    "::/96",          // unspecified, loopback, IPv4-compatible
    "::ffff:0:0/96",  // IPv4-mapped
    "64:ff9b:1::/48", // local NAT64, RFC 8215
    "100::/64",       // discard, RFC 6666
    "2001::/32",      // Teredo
    "2002::/16",      // 6to4
    "5f00::/16",      // segment routing, RFC 9602
    "fc00::/7",       // unique local
    "fe80::/10",      // link-local
    "fec0::/10",      // site-local, withdrawn
    "ff00::/8",       // multicast
];

/// Where the IPv4 Internet appears to a host that has only IPv6 (RFC 6052): the refused IPv4 ranges are refused there too.
const NAT64: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0);

/// The rules the guard is written from.
#[derive(Debug, Serialize)]
pub(super) struct Guard {
    pub(super) refused: Vec<Range>,
    pub(super) allowed: Vec<Range>,
    pub(super) own: Vec<Endpoint>,
    pub(super) ports: Vec<u16>,
}

/// An address range in the two fields Envoy wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Range {
    pub(super) address: IpAddr,
    pub(super) length: u8,
}

/// One of our own sockets as it can be reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Endpoint {
    pub(super) address: IpAddr,
    /// 32 or 128: one address.
    pub(super) length: u8,
    pub(super) port: u16,
}

impl Guard {
    pub(super) fn new(settings: &Settings, local: &[IpAddr]) -> Self {
        Self {
            refused: refused().map(Range::from).collect(),
            allowed: settings.upstream.allow_private.iter().copied().map(Range::from).collect(),
            own: own_endpoints(settings, local),
            ports: settings.upstream.ports.iter().copied().collect(),
        }
    }
}

impl From<IpNet> for Range {
    fn from(net: IpNet) -> Self {
        Self { address: net.network(), length: net.prefix_len() }
    }
}

/// The refused ranges, those behind NAT64 among them.
pub(super) fn refused() -> impl Iterator<Item = IpNet> {
    REFUSED.iter().filter_map(|range| range.parse().ok()).flat_map(|net: IpNet| {
        let translated = match net {
            IpNet::V4(v4) => nat64(v4),
            IpNet::V6(_) => None,
        };
        std::iter::once(net).chain(translated)
    })
}

/// The range as seen through the well-known NAT64 prefix.
fn nat64(net: Ipv4Net) -> Option<IpNet> {
    let address = u128::from(NAT64) | u128::from(u32::from(net.network()));
    Ipv6Net::new(Ipv6Addr::from(address), 96 + net.prefix_len()).ok().map(IpNet::V6)
}

/// Every address and port at which a connection of ours would come back to us.
pub(super) fn own_endpoints(settings: &Settings, local: &[IpAddr]) -> Vec<Endpoint> {
    let listen = &settings.listen;
    let mut endpoints = Vec::new();
    let dialled_in = settings.role.dialled_in();
    for socket in
        [listen.http, listen.tls, listen.dns, Some(listen.admin), listen.metrics, dialled_in].into_iter().flatten()
    {
        for address in addresses_of(socket, settings, local) {
            let length = if address.is_ipv4() { 32 } else { 128 };
            endpoints.push(Endpoint { address, length, port: socket.port() });
        }
    }
    endpoints.sort();
    endpoints.dedup();
    endpoints
}

/// The addresses a socket answers on: its own and what clients know us by; all of the host's where it is bound to none.
fn addresses_of(socket: SocketAddr, settings: &Settings, local: &[IpAddr]) -> Vec<IpAddr> {
    let mut addresses = settings.proxy.addresses.clone();
    if socket.ip().is_unspecified() {
        addresses.extend([IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]);
        addresses.extend(local);
    } else {
        addresses.push(socket.ip());
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_of_the_table_is_one() {
        for text in REFUSED {
            let net: IpNet = text.parse().unwrap();
            assert_eq!(net.network(), net.addr(), "{text} has bits behind its length");
        }
    }

    #[test]
    fn a_private_ipv4_range_is_refused_behind_nat64_too_and_a_public_address_is_not() {
        let covers = |address: &str| {
            let address: IpAddr = address.parse().unwrap();
            refused().any(|net| net.contains(&address))
        };
        for inside in [
            "64:ff9b::10.1.2.3",
            "64:ff9b::127.0.0.1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "2002:7f00:1::",
            "169.254.169.254",
        ] {
            assert!(covers(inside), "{inside}");
        }
        for outside in ["64:ff9b::8.8.8.8", "8.8.8.8", "198.51.100.7", "192.0.2.1", "2a00::1", "2001:4860::1"] {
            assert!(!covers(outside), "{outside}");
        }
    }
}
