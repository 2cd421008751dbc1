//! The sockets of one key under `listen`: one address or several, of either family, with one port.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::{Deserialize, Serialize};

/// The family of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

impl Family {
    /// Both families.
    pub const BOTH: [Self; 2] = [Self::Ipv4, Self::Ipv6];

    /// Returns the family of `address`.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::Ipv4 } else { Self::Ipv6 }
    }

    /// Returns the name for people.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        }
    }
}

/// At least one socket. All have the same port, and none covers another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "OneOrSeveral", into = "OneOrSeveral")]
pub struct Sockets {
    first: SocketAddr,
    more: Vec<SocketAddr>,
}

/// The form in JSON: a string, or a list of strings.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrSeveral {
    One(SocketAddr),
    Several(Vec<SocketAddr>),
}

/// The reason why addresses are not the sockets of one key. Each names the index of the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotSockets {
    /// There is no address.
    #[error("no address")]
    Empty,
    /// The port differs from the first one.
    #[error("another port than the first address")]
    OtherPort(usize),
    /// The address is part of another one.
    #[error("an address that another one covers")]
    Covered {
        /// The index of the address.
        index: usize,
        /// The index of the earlier address.
        by: usize,
    },
}

impl Sockets {
    /// Returns the sockets, or the reason why the addresses do not go together.
    pub(crate) fn new(addresses: &[SocketAddr]) -> Result<Self, NotSockets> {
        let [first, more @ ..] = addresses else { return Err(NotSockets::Empty) };
        for (index, socket) in addresses.iter().enumerate() {
            if socket.port() != first.port() {
                return Err(NotSockets::OtherPort(index));
            }
            if let Some(by) = addresses.iter().take(index).position(|other| overlap(*other, *socket)) {
                return Err(NotSockets::Covered { index, by });
            }
        }
        Ok(Self { first: *first, more: more.to_vec() })
    }

    /// Returns the sockets of every address of both families, with this port.
    pub(crate) fn of_every_address(port: u16) -> Self {
        let any = |address: IpAddr| SocketAddr::new(address, port);
        Self { first: any(Ipv4Addr::UNSPECIFIED.into()), more: vec![any(Ipv6Addr::UNSPECIFIED.into())] }
    }

    /// Returns the same addresses with another port.
    #[must_use]
    pub(crate) fn at_port(&self, port: u16) -> Self {
        let moved = |socket: SocketAddr| SocketAddr::new(socket.ip(), port);
        Self { first: moved(self.first), more: self.more.iter().copied().map(moved).collect() }
    }

    /// Returns the first socket in the file.
    pub fn first(&self) -> SocketAddr {
        self.first
    }

    /// Returns the first socket as programs of this machine reach it: loopback for every address.
    #[must_use]
    pub fn from_this_machine(&self) -> SocketAddr {
        let socket = self.first();
        let ip = match socket.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        SocketAddr::new(ip, socket.port())
    }

    /// Returns the sockets in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        std::iter::once(self.first).chain(self.more.iter().copied())
    }

    /// Returns the port, which all sockets share.
    pub fn port(&self) -> u16 {
        self.first.port()
    }

    /// Returns true if a socket has an address of the family.
    pub fn serves(&self, family: Family) -> bool {
        self.iter().any(|socket| Family::of(socket.ip()) == family)
    }

    /// Returns true if only programs of this machine reach the sockets.
    pub(crate) fn is_loopback(&self) -> bool {
        self.iter().all(|socket| socket.ip().is_loopback())
    }

    /// Returns true if a socket has every address of its family.
    pub fn has_wildcard(&self) -> bool {
        self.iter().any(|socket| socket.ip().is_unspecified())
    }

    /// Returns the sockets without `[::]`, unless nothing else is left. A machine without IPv6 cannot bind it.
    #[must_use]
    pub fn without_ipv6_wildcard(&self) -> Self {
        let left: Vec<SocketAddr> =
            self.iter().filter(|socket| socket.is_ipv4() || !socket.ip().is_unspecified()).collect();
        Self::new(&left).unwrap_or_else(|_| self.clone())
    }
}

/// Returns true if two listeners of one family cannot have these sockets at the same time.
pub(crate) fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let same = a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() == b.port() && a.is_ipv4() == b.is_ipv4() && same
}

/// Returns true if `address` reaches the listener at `bound` on this machine, which has the addresses `own`.
pub fn reaches(bound: SocketAddr, address: SocketAddr, own: &[IpAddr]) -> bool {
    let here = address.ip() == bound.ip() || address.ip().is_unspecified();
    let any = bound.ip().is_unspecified() && (address.ip().is_loopback() || own.contains(&address.ip()));
    bound.port() == address.port() && (here || any)
}

impl From<SocketAddr> for Sockets {
    fn from(first: SocketAddr) -> Self {
        Self { first, more: Vec::new() }
    }
}

impl TryFrom<OneOrSeveral> for Sockets {
    type Error = NotSockets;

    fn try_from(sockets: OneOrSeveral) -> Result<Self, NotSockets> {
        match sockets {
            OneOrSeveral::One(socket) => Ok(socket.into()),
            OneOrSeveral::Several(sockets) => Self::new(&sockets),
        }
    }
}

impl From<Sockets> for OneOrSeveral {
    fn from(sockets: Sockets) -> Self {
        if sockets.more.is_empty() { Self::One(sockets.first) } else { Self::Several(sockets.iter().collect()) }
    }
}

/// Writes the sockets with commas: `0.0.0.0:80,[::]:80`.
impl fmt::Display for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        self.more.iter().try_for_each(|socket| write!(f, ",{socket}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sockets(addresses: &[&str]) -> Result<Sockets, NotSockets> {
        Sockets::new(&addresses.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>())
    }

    #[test]
    fn sockets_of_one_key_share_a_port_and_do_not_cover_each_other() {
        let both = sockets(&["0.0.0.0:80", "[::]:80"]).unwrap();
        assert_eq!((both.port(), both.to_string().as_str()), (80, "0.0.0.0:80,[::]:80"));
        assert!(Family::BOTH.into_iter().all(|family| both.serves(family)));
        assert!(!sockets(&["192.0.2.1:80"]).unwrap().serves(Family::Ipv6));
        assert_eq!(sockets(&[]), Err(NotSockets::Empty));
        assert_eq!(sockets(&["0.0.0.0:80", "[::]:81"]), Err(NotSockets::OtherPort(1)));
        for covered in [["0.0.0.0:80", "192.0.2.1:80"], ["[2001:db8::1]:80", "[::]:80"], ["[::1]:80", "[::1]:80"]] {
            assert_eq!(sockets(&covered), Err(NotSockets::Covered { index: 1, by: 0 }), "{covered:?}");
        }
    }

    #[test]
    fn a_machine_without_ipv6_keeps_every_address_but_the_wildcard() {
        let left = |addresses: &[&str]| sockets(addresses).unwrap().without_ipv6_wildcard().to_string();
        assert_eq!(left(&["0.0.0.0:80", "[::]:80"]), "0.0.0.0:80");
        assert_eq!(left(&["[::]:80"]), "[::]:80", "the operator asked for nothing else");
        assert_eq!(left(&["192.0.2.1:80", "[2001:db8::1]:80"]), "192.0.2.1:80,[2001:db8::1]:80");
    }

    #[test]
    fn one_socket_is_a_string_in_json_and_several_are_a_list() {
        for text in [r#""0.0.0.0:80""#, r#"["0.0.0.0:80","[::]:80"]"#] {
            let sockets: Sockets = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&sockets).unwrap(), text);
        }
        assert!(serde_json::from_str::<Sockets>("[]").is_err());
    }
}
