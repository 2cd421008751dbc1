//! The state of a machine from which a plan is computed.

use super::link_device::LinkDevice;
use super::routes;

pub(super) const SLOW_START: &str = "net.ipv4.tcp_slow_start_after_idle";
pub(super) const WMEM: &str = "net.ipv4.tcp_wmem";
pub(super) const RMEM: &str = "net.ipv4.tcp_rmem";
pub(super) const FORWARD: &str = "net.ipv4.ip_forward";
pub(super) const ALLOWED: &str = "net.ipv4.tcp_allowed_congestion_control";
pub(super) const IPV6_FORWARD: &str = "net.ipv6.conf.all.forwarding";
/// Counts the packets of connections. The rules of `compare` turn it on, so that `--undo` has to know the value before.
pub(super) const ACCOUNTING: &str = "net.netfilter.nf_conntrack_acct";
/// Lets packets in whose source is an address of this host: the responses of siblings.
pub(super) const ACCEPT_LOCAL: &str = "net.ipv4.conf.all.accept_local";
/// The time for which the kernel opens plain TCP after SYNs of Multipath TCP got no response. A cut looks like such a firewall.
pub(super) const BLACKHOLE: &str = "net.mptcp.blackhole_timeout";
/// The time for which the kernel keeps a connection of Multipath TCP without any subflow, in seconds.
pub(super) const WITHOUT_SUBFLOW: &str = "net.mptcp.close_timeout";

/// The present state of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// The interfaces to the clients, at least one.
    pub clients: Vec<ClientInterface>,
    /// The values of kernel settings, by name.
    pub sysctls: Vec<(&'static str, String)>,
    /// The policy routing rules, as `ip -4 rule show` prints them.
    pub rules: String,
    /// The policy routing rules, as `ip -6 rule show` prints them.
    pub ipv6_rules: String,
    /// The interfaces whose network a sibling is on, sorted. Empty if any sibling is on no network of this machine.
    pub to_siblings: Vec<String>,
    /// The state of `link.device`. None: the settings name none.
    pub link: Option<LinkDevice>,
}

/// An interface behind which clients are, and its present state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientInterface {
    /// Its name.
    pub name: String,
    /// Its routes, as `ip -4 route show dev IF` prints them. Empty if the interface does not exist yet.
    pub routes: String,
    /// Its routes, as `ip -6 route show dev IF` prints them.
    pub ipv6_routes: String,
    /// True if IPv6 is on at the interface and at `lo`.
    pub ipv6: bool,
}

impl ClientInterface {
    /// Returns true if the interface has an IPv6 address that clients of other networks can use, by its routes.
    pub fn has_ipv6_network(&self) -> bool {
        self.ipv6 && self.ipv6_routes.lines().any(|route| !routes::is_of_the_kernel_alone(route))
    }
}

impl Machine {
    /// The kernel settings that a plan may change.
    pub const SYSCTLS: &[&str] =
        &[SLOW_START, WMEM, RMEM, FORWARD, ALLOWED, IPV6_FORWARD, ACCOUNTING, ACCEPT_LOCAL, BLACKHOLE, WITHOUT_SUBFLOW];

    /// Returns true if IPv6 is on at an interface to the clients.
    pub(super) fn has_ipv6(&self) -> bool {
        self.clients.iter().any(|interface| interface.ipv6)
    }

    /// Returns the interfaces to the clients as nft matches them: `"lan0"`, or `{ "lan0", "lan0.20" }`.
    pub(super) fn clients_in_nft(&self) -> String {
        match self.clients.as_slice() {
            [one] => format!("\"{}\"", one.name),
            _ => self.clients_and(&[]),
        }
    }

    /// Returns the set of the interfaces to the clients and of `others`, as nft writes it.
    pub(super) fn clients_and(&self, others: &[&str]) -> String {
        let names = self.clients.iter().map(|interface| interface.name.as_str()).chain(others.iter().copied());
        let names: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
        format!("{{ {} }}", names.join(", "))
    }

    /// Returns true if this machine forwards IPv4 packets, or does not say.
    pub fn forwards_ipv4(&self) -> bool {
        self.sysctl(FORWARD) != Some("0")
    }

    /// Returns true if this machine forwards IPv6 packets.
    pub fn forwards_ipv6(&self) -> bool {
        self.sysctl(IPV6_FORWARD) == Some("1")
    }

    /// Returns the value of a kernel setting. None if this kernel does not have it.
    pub(super) fn sysctl(&self, name: &str) -> Option<&str> {
        self.sysctls.iter().find(|(have, _)| *have == name).map(|(_, value)| value.as_str())
    }
}
