//! The packet rules of `listen.tcp`: other TCP ports of clients, but for private destinations.

use std::net::IpAddr;

use ipnet::IpNet;
use longhaul_config::{DialledPorts, OtherPorts};

use super::listener::Listener;
use crate::guard;

/// The name of the counters of these packets.
pub(super) const COUNTER: &str = "tcp";

/// The rules for one listener.
pub(super) struct OtherPortRules {
    /// The match of the ports that clients dial, as it follows `tcp dport`.
    pub(super) dialled: String,
    listener: Listener,
}

impl OtherPortRules {
    pub(super) fn new(ports: &OtherPorts) -> Self {
        let dialled = match &ports.dialled {
            DialledPorts::Listed(listed) => set(&listed.iter().copied().collect::<Vec<_>>()),
            DialledPorts::All => {
                let left: Vec<u16> = [DialledPorts::NEVER].into_iter().chain(DialledPorts::TAKEN).collect();
                format!("!= {}", set(&left))
            }
        };
        Self { dialled, listener: Listener::new(0, &ports.sockets) }
    }

    /// Returns the rules that redirect new connections. They follow those of the web, which leave connections under way
    /// alone.
    pub(super) fn redirects(&self) -> String {
        let (family, to) = (self.listener.family(), self.listener.to);
        let redirect = format!("\t\t{family}tcp dport {} counter name to_{COUNTER} redirect to :{to}\n", self.dialled);
        self.private() + &redirect
    }

    /// Returns the rules that give packets to the listener, with this mark.
    pub(super) fn tproxies(&self, mark: u32) -> String {
        let (dialled, to) = (&self.dialled, self.listener.to);
        let rule = |family| {
            format!(
                "\t\ttcp dport {dialled} counter name to_{COUNTER} tproxy {family} to :{to} meta mark set {mark:#x} accept\n"
            )
        };
        self.private() + &self.listener.families().map(rule).collect::<String>()
    }

    /// Returns the rules that leave special addresses alone. The same ones mean other hosts at the ground, whose guard
    /// refuses them.
    fn private(&self) -> String {
        const WHY: &str = "\t\t# the ground reaches other private networks than clients mean\n";
        let (ipv4, ipv6): (Vec<IpNet>, Vec<IpNet>) = guard::refused().partition(|range| range.addr().is_ipv4());
        let rule = |family, ranges: Vec<IpNet>| {
            let ranges: Vec<String> = IpNet::aggregate(&ranges).iter().map(written).collect();
            format!("\t\ttcp dport {} {family} daddr {{ {} }} accept\n", self.dialled, ranges.join(", "))
        };
        [WHY.to_owned(), rule("ip", ipv4), rule("ip6", ipv6)].concat()
    }
}

/// Returns some ports of the rule, to name and to count them.
pub(super) fn some(dialled: &DialledPorts) -> Vec<u16> {
    match dialled {
        DialledPorts::Listed(listed) => listed.iter().copied().collect(),
        DialledPorts::All => DialledPorts::AUTO.to_vec(),
    }
}

/// Returns a set of nft.
pub(super) fn set(ports: &[u16]) -> String {
    let words: Vec<String> = ports.iter().map(ToString::to_string).collect();
    format!("{{ {} }}", words.join(", "))
}

/// Returns a range as nft writes it. Of one address it writes no length.
fn written(range: &IpNet) -> String {
    match range.addr() {
        IpAddr::V4(address) if range.prefix_len() == 32 => address.to_string(),
        IpAddr::V6(address) if range.prefix_len() == 128 => address.to_string(),
        _ => range.to_string(),
    }
}
