//! Owners of budgets: each IPv4 address and each /64 of IPv6 has one.

use std::net::{IpAddr, Ipv6Addr};

use http_semantics::authority;

/// The owner of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Client {
    /// An IPv4 address.
    V4([u8; 4]),
    /// The first 64 bits of an IPv6 address. A subscriber has all addresses behind them.
    V6(u64),
    /// The proxy itself, for objects that it prefetches.
    Ourselves,
}

impl Client {
    /// Reads the value of [`crate::marks::CLIENT`]. Returns None if it is empty or not an address.
    pub fn of(mark: &[u8]) -> Option<Self> {
        if mark == b"self" {
            return Some(Self::Ourselves);
        }
        Some(match authority::address(std::str::from_utf8(mark).ok()?)? {
            IpAddr::V4(address) => Self::V4(address.octets()),
            IpAddr::V6(address) => Self::V6(first_half(address)),
        })
    }

    /// Returns bytes that no other client has.
    pub(crate) fn bytes(self) -> Vec<u8> {
        match self {
            Self::V4(octets) => octets.to_vec(),
            Self::V6(prefix) => prefix.to_be_bytes().to_vec(),
            Self::Ourselves => Vec::new(),
        }
    }
}

fn first_half(address: Ipv6Addr) -> u64 {
    u64::try_from(address.to_bits() >> 64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_or_a_subscribers_prefix_is_one_client() {
        let v4 = Some(Client::V4([192, 0, 2, 7]));
        assert_eq!(Client::of(b"192.0.2.7"), v4);
        assert_eq!(Client::of(b"::ffff:192.0.2.7"), v4, "the same address");
        assert_eq!(Client::of(b"2001:db8::1"), Client::of(b"2001:db8::ffff:0:0:2"));
        assert_ne!(Client::of(b"2001:db8::1"), Client::of(b"2001:db8:0:1::1"));
        assert_eq!(Client::of(b"fe80::1%eth0"), Client::of(b"fe80::2"));
        assert_eq!(Client::of(b"self"), Some(Client::Ourselves));
        for nobody in ["", "-", "envoy://bytes/", "192.0.2.7:80"] {
            assert_eq!(Client::of(nobody.as_bytes()), None, "{nobody}");
        }
    }
}
