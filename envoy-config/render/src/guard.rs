//! The ranges, addresses and ports that no client may reach through the proxy.
//!
//! A client chooses the host name, so it also chooses the address. These ranges keep it away from the operator's own
//! network. Envoy matches them against the resolved address, so a public name that points inside is refused like an
//! address literal.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http_semantics::addresses;
use ipnet::IpNet;
use longhaul_config::{Host, Settings};
use serde::Serialize;

/// The rules that the guard is rendered from.
#[derive(Debug, Serialize)]
pub struct Guard {
    pub(super) refused: Vec<Range>,
    pub(super) allowed: Vec<Range>,
    pub(super) own: Vec<Endpoint>,
    /// The ranges of `upstream.deny`.
    pub(super) denied: Vec<Range>,
    pub(super) ports: Vec<u16>,
}

/// An address range, in the two fields that Envoy expects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Range {
    pub(super) address: IpAddr,
    pub(super) length: u8,
}

/// An address of this host, or a range of them, with the refused port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Endpoint {
    pub(super) address: IpAddr,
    /// The length of the prefix.
    pub(super) length: u8,
    /// The refused port. None: every port.
    pub(super) port: Option<u16>,
}

/// The reason why the guard refuses a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// An address of this host.
    #[error("an address of this host, which a client could use for a loop")]
    Own,
    /// A range of `upstream.deny`.
    #[error("in a range of upstream.deny")]
    Denied,
    /// An address that is not on the Internet.
    #[error("not an address of the Internet; list it under upstream.allow_private if clients may reach it")]
    NotPublic,
    /// A port that is not listed.
    #[error("at a port that upstream.ports does not list")]
    Port,
}

impl Guard {
    /// Returns the verdict on a destination that a name resolved to, with the rules that Envoy receives. None: clients
    /// may reach it.
    pub fn refusal(&self, destination: SocketAddr) -> Option<Refused> {
        let (address, port) = (destination.ip(), destination.port());
        let own = |own: &Endpoint| own.contains(address) && own.port.is_none_or(|refused| refused == port);
        let within = |ranges: &[Range]| ranges.iter().any(|range| range.contains(address));
        if self.own.iter().any(own) {
            Some(Refused::Own)
        } else if within(&self.denied) {
            Some(Refused::Denied)
        } else if within(&self.refused) && !within(&self.allowed) {
            Some(Refused::NotPublic)
        } else {
            (!self.ports.contains(&port)).then_some(Refused::Port)
        }
    }

    /// Returns the guard of a box with these settings on a machine with these addresses.
    pub fn new(settings: &Settings, local: &[IpAddr]) -> Self {
        Self {
            refused: refused().map(Range::from).collect(),
            allowed: settings.upstream.allow_private.iter().copied().map(Range::from).collect(),
            own: own_endpoints(settings, local),
            denied: settings.upstream.deny.iter().copied().map(Range::from).collect(),
            ports: settings.upstream.ports.iter().copied().collect(),
        }
    }
}

impl Range {
    fn contains(&self, address: IpAddr) -> bool {
        IpNet::new(self.address, self.length).is_ok_and(|net| net.contains(&address))
    }
}

impl Endpoint {
    fn contains(&self, address: IpAddr) -> bool {
        IpNet::new(self.address, self.length).is_ok_and(|net| net.contains(&address))
    }
}

impl From<IpNet> for Range {
    fn from(net: IpNet) -> Self {
        Self { address: net.network(), length: net.prefix_len() }
    }
}

/// Returns the refused ranges, including those behind NAT64. [`addresses`] is the table.
pub(super) fn refused() -> impl Iterator<Item = IpNet> {
    addresses::refused().filter_map(|range| IpNet::new(range.network, range.length).ok())
}

/// Returns the refused endpoints of this host. Every port of its addresses is refused, because other services there
/// trust this host.
///
/// If `upstream.allow_private` lists one of the addresses by itself (`/32` or `/128`), only the ports of this box's
/// listeners are refused there, as a loop.
fn own_endpoints(settings: &Settings, local: &[IpAddr]) -> Vec<Endpoint> {
    let ports: BTreeSet<u16> = own_sockets(settings).map(|socket| socket.port()).collect();
    let allowed = |address: IpAddr| settings.upstream.allow_private.contains(&IpNet::from(address));
    let endpoints = own_addresses(settings, local).into_iter().flat_map(|address| {
        let ports: Vec<Option<u16>> =
            if allowed(address) { ports.iter().copied().map(Some).collect() } else { vec![None] };
        let length = if address.is_ipv4() { 32 } else { 128 };
        ports.into_iter().map(move |port| Endpoint { address, length, port })
    });
    let ranges = settings.proxy.ranges.iter();
    let ranges = ranges.map(|range| Endpoint { address: range.network(), length: range.prefix_len(), port: None });
    endpoints.chain(ranges).collect()
}

/// Returns every socket on which this box listens.
fn own_sockets(settings: &Settings) -> impl Iterator<Item = SocketAddr> + '_ {
    let challenges = settings.acme.as_ref().and_then(|acme| acme.listen);
    settings.listen.sockets().map(|(_, socket)| socket).chain(challenges)
}

/// Returns every address at which a connection of Envoy would come back to this host, also through NAT64.
pub(super) fn own_addresses(settings: &Settings, local: &[IpAddr]) -> BTreeSet<IpAddr> {
    let mut addresses = BTreeSet::from([IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]);
    addresses.extend(own_sockets(settings).map(|socket| socket.ip()));
    addresses.extend(&settings.proxy.addresses);
    addresses.extend(settings.proxy.secure_names.iter().filter_map(|name| match name {
        Host::Address(address) => Some(*address),
        Host::Name(_) => None,
    }));
    addresses.extend(local);
    addresses.retain(|address| !address.is_unspecified());
    let translated: Vec<IpAddr> = addresses.iter().filter_map(|address| nat64(*address)).collect();
    addresses.extend(translated);
    addresses
}

/// Returns an IPv4 address as seen through the well-known NAT64 prefix (RFC 6052). The operator must deny prefixes of
/// their own.
fn nat64(address: IpAddr) -> Option<IpAddr> {
    const PREFIX: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0);
    match address {
        IpAddr::V4(v4) => Some(Ipv6Addr::from(u128::from(PREFIX) | u128::from(u32::from(v4))).into()),
        IpAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use url_mapping::{Base, Level, Mapper, Outcome, Reason, Rules, Scheme, Use};

    use super::*;

    /// Generates addresses at the edges of every row, and close to them.
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
        fn the_map_moves_nothing_that_the_guard_refuses(address in near_a_row()) {
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
    fn a_destination_is_refused_for_the_first_reason_that_holds() {
        let text = "link: { rtt: 600ms, down: 20mbit, up: 5mbit }\nproxy: { addresses: [198.51.100.12] }\n\
                    upstream: { resolvers: [192.0.2.53], allow_private: [10.0.0.0/8, 127.0.0.1/32], deny: [10.9.0.0/16] }\n";
        let loaded = longhaul_config::load_text(std::path::Path::new("longhaul.yaml"), text.to_owned()).unwrap();
        let guard = Guard::new(&loaded.settings, &["192.0.2.7".parse().unwrap()]);
        let verdict = |destination: &str| guard.refusal(destination.parse().unwrap());
        for (destination, expected) in [
            ("8.8.8.8:80", None),
            ("[2a00::1]:443", None),
            ("8.8.8.8:25", Some(Refused::Port)),
            ("192.0.2.7:80", Some(Refused::Own)),
            ("[64:ff9b::c000:207]:80", Some(Refused::Own)),
            ("198.51.100.12:443", Some(Refused::Own)),
            ("10.1.2.3:80", None),
            ("10.9.2.3:80", Some(Refused::Denied)),
            ("192.168.0.1:80", Some(Refused::NotPublic)),
            ("[::ffff:8.8.8.8]:80", Some(Refused::NotPublic)),
            ("127.0.0.1:80", Some(Refused::Own)),
            ("127.0.0.1:8443", Some(Refused::Port)),
        ] {
            assert_eq!(verdict(destination), expected, "{destination}");
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
