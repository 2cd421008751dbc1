//! The ranges, addresses and ports that no client may reach through the proxy.
//!
//! A client chooses the host name, so it chooses the address: these ranges keep it from choosing the operator's own
//! network. They are matched against the address Envoy resolved, after resolution, so a public name that points inside
//! is caught like an address literal.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http_semantics::addresses;
use ipnet::IpNet;
use serde::Serialize;

use crate::config::Settings;

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

/// The refused ranges, those behind NAT64 among them: [`addresses`] is the table.
pub(super) fn refused() -> impl Iterator<Item = IpNet> {
    addresses::refused().filter_map(|range| IpNet::new(range.network, range.length).ok())
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
    use proptest::prelude::*;
    use url_mapping::{Base, Level, Mapper, Outcome, Reason, Rules, Scheme, Use};

    use super::*;

    /// Addresses at the edges of every row, and close to them.
    fn near_a_row() -> impl Strategy<Value = IpAddr> {
        (0..addresses::rows().len(), any::<u32>(), 0_u32..32).prop_map(|(row, low, shift)| {
            match addresses::rows()[row].range.network {
                IpAddr::V4(network) => Ipv4Addr::from(u32::from(network).wrapping_add(low >> shift)).into(),
                IpAddr::V6(network) => {
                    Ipv6Addr::from(u128::from(network).wrapping_add(u128::from(low) << shift)).into()
                }
            }
        })
    }

    proptest! {
        #[test]
        fn what_the_guard_refuses_the_map_does_not_move(address in near_a_row()) {
            let pep = || vec!["pep.example".to_owned()];
            let mapper = Mapper::new(&Rules {
                https_targets: Vec::new(),
                http_targets: pep(),
                own: pep(),
                level: Level::Full,
                exclude: Vec::new(),
                ports: vec![80],
                url_bytes: 4096,
            }).unwrap();
            let page = Base::new(Scheme::Http, "www.example.org", "/").unwrap();
            let host = match address {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("[{address}]"),
            };
            let outcome = mapper.forward(&page, &format!("http://{host}/a.png"), Use::Image);
            if refused().any(|net| net.contains(&address)) {
                prop_assert_eq!(outcome, Outcome::Left(Reason::PrivateAddress));
            } else {
                prop_assert!(matches!(outcome, Outcome::Moved(_)), "{} {:?}", address, outcome);
            }
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
