//! The listeners that packets of clients are led to.

use longhaul_config::{Family, Sockets};

/// A listener for packets that clients send to a port of other hosts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listener {
    /// The port of the other hosts.
    pub(super) from: u16,
    /// The port of the listener.
    pub(super) to: u16,
    ipv4: bool,
    ipv6: bool,
}

impl Listener {
    pub(super) fn new(from: u16, sockets: &Sockets) -> Self {
        let (ipv4, ipv6) = (sockets.serves(Family::Ipv4), sockets.serves(Family::Ipv6));
        Self { from, to: sockets.port(), ipv4, ipv6 }
    }

    /// Returns the match of packets that the listener can take. The table has the packets of both families.
    pub(super) fn family(self) -> &'static str {
        match (self.ipv4, self.ipv6) {
            (true, false) => "meta nfproto ipv4 ",
            (false, true) => "meta nfproto ipv6 ",
            _ => "",
        }
    }

    /// Returns the families of the listener, as `tproxy` writes them.
    pub(super) fn families(self) -> impl Iterator<Item = &'static str> {
        [("ip", self.ipv4), ("ip6", self.ipv6)].into_iter().filter_map(|(name, served)| served.then_some(name))
    }
}
