//! The client of an address.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv6Net};

/// The bits of an IPv6 address that name a subscriber (RFC 6177): it has all addresses behind them.
const SUBSCRIBER_BITS: u8 = 64;

/// A client: an IPv4 address, the first 64 bits of an IPv6 address, or everybody whose address is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subscriber(Option<IpAddr>);

impl Subscriber {
    /// Everybody whose address is unknown.
    pub const UNKNOWN: Self = Self(None);

    /// The weight of a client in no group, in tenths.
    pub const USUAL_TENTHS: u32 = 10;

    /// Reads the address of a client. Text that is no address is the unknown client.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        let address = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
        address.map_or(Self::UNKNOWN, Self::at)
    }

    /// Returns the client with this address.
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        Self(Some(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => Ipv6Net::new(address, SUBSCRIBER_BITS).map_or(address, |net| net.network()).into(),
        }))
    }

    /// Returns true if a range has this client. A range within a /64 has no client of its own.
    #[must_use]
    pub fn is_in(self, range: &IpNet) -> bool {
        self.0.is_some_and(|address| range.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_ipv4_address_or_a_64_of_ipv6() {
        let same = |one: &str, other: &str| Subscriber::of(one.as_bytes()) == Subscriber::of(other.as_bytes());
        assert!(same("2001:db8::1", "2001:db8:0:0:ffff::2") && !same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("192.0.2.1", "::ffff:192.0.2.1") && !same("192.0.2.1", "192.0.2.2"));
        assert!(same("", "-") && !same("", "192.0.2.1"));
        let crew: IpNet = "192.0.2.64/26".parse().unwrap();
        let is_crew = |text: &[u8]| Subscriber::of(text).is_in(&crew);
        assert!(is_crew(b"192.0.2.65") && !is_crew(b"192.0.2.1") && !is_crew(b"2001:db8::1") && !is_crew(b""));
    }
}
