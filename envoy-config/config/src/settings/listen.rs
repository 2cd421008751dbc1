//! The sockets of a box, the proxy's addresses for clients, and the hosts that the box may reach.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;

use http_semantics::addresses::is_local_to_browsers;

use crate::names::{Host, HostName};
use crate::sockets::{Family, Sockets};

/// The addresses and names of the proxy for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// The addresses, at least one, without duplicates. They come first in DNS responses, and are the http targets of
    /// moved URLs.
    pub addresses: Vec<IpAddr>,
    /// Ranges that lead to this box as a whole, at most one of each family. In DNS responses each server has an address of
    /// its own there.
    pub ranges: Vec<IpNet>,
    /// The proxy's own https names or addresses. A certificate in [`Settings::terminate`](super::Settings::terminate)
    /// covers each, or is awaited ([`Acme::awaited`](super::Acme::awaited)).
    pub secure_names: Vec<Host>,
    /// Addresses of the other boxes that hold [`Self::addresses`], without duplicates, on networks that both are part of.
    /// They continue connections that began there, when clients move here.
    pub siblings: Vec<IpAddr>,
}

impl Proxy {
    /// Returns the addresses of a family that browsers call local: no public page may load an object there. An address of
    /// the clients' own machine is a trial.
    pub fn local_addresses(&self, family: Family) -> impl Iterator<Item = &IpAddr> {
        let of = move |address: &&IpAddr| Family::of(**address) == family && !address.is_loopback();
        self.addresses.iter().filter(of).filter(|address| is_local_to_browsers(**address))
    }

    /// Returns the entries that names must not be steered to, because browsers call them local. A range of a family stands
    /// before its addresses.
    pub fn local_steering(&self) -> Vec<IpNet> {
        let of = |family| match self.ranges.iter().find(|range| Family::of(range.addr()) == family) {
            Some(range) => Vec::from_iter(is_local_to_browsers(range.addr()).then_some(*range)),
            None => self.local_addresses(family).copied().map(IpNet::from).collect(),
        };
        Family::BOTH.into_iter().flat_map(of).collect()
    }
}

/// The sockets that this box binds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Intercepted http traffic and that to the proxy's addresses; at a ground, the pipe.
    pub http: Sockets,
    /// TLS: ends here for the proxy's own names and terminated names, and is passed through by SNI for all others.
    /// None: `off`.
    pub tls: Option<Sockets>,
    /// The steering DNS, over UDP and TCP. None: `off`.
    pub dns: Option<Sockets>,
    /// True if [`Self::dns`] has every address by `auto`, and fewer will do where another program has the port.
    pub dns_is_auto: bool,
    /// Prometheus metrics of Envoy and CoreDNS. None: `off`.
    pub metrics: Option<PageListen>,
    /// The status page. None: `off`.
    pub status: Option<PageListen>,
    /// The health endpoint for load balancers. None: `off`.
    pub health: Option<SocketAddr>,
    /// Prometheus metrics of the image program. None: `off`.
    pub image_metrics: Option<SocketAddr>,
    /// The way in which packets for other addresses reach this box.
    pub intercept: Intercept,
    /// The other TCP ports of a remote that cross the pipe. None: `off`, or no packet of a client is intercepted.
    pub tcp: Option<OtherPorts>,
}

/// The TCP ports beside web and DNS whose connections cross the pipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherPorts {
    /// The ports that clients dial.
    pub dialled: DialledPorts,
    /// The sockets of the listener that packet rules lead these connections to.
    pub sockets: Sockets,
}

/// The ports that clients dial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialledPorts {
    /// Every one, but for those that other rules take and [`DialledPorts::NEVER`].
    All,
    /// These ones, at least one.
    Listed(BTreeSet<u16>),
}

impl DialledPorts {
    /// The ports of `auto`: ssh, mail and chat. Servers of these protocols speak first, or their clients wait for several
    /// round trips.
    pub const AUTO: [u16; 10] = [22, 110, 143, 465, 587, 993, 995, 5222, 5223, 5228];
    /// SMTP between servers. Spam of one client would be held against the ground's address, which all share.
    pub const NEVER: u16 = 25;
    /// The ports that other listeners take: DNS, http and TLS.
    pub const TAKEN: [u16; 3] = [53, 80, 443];
    /// The port of the listener, which the packet rules and the listener must both know.
    pub(crate) const LISTENER: u16 = 4170;

    /// Returns true if clients' connections to this port cross the pipe.
    pub fn has(&self, port: u16) -> bool {
        match self {
            Self::All => port != Self::NEVER && !Self::TAKEN.contains(&port),
            Self::Listed(listed) => listed.contains(&port),
        }
    }
}

/// The socket of the metrics or of the status page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageListen {
    /// The socket.
    pub socket: SocketAddr,
    /// False for the default socket. If that one is in use, a run starts without the page; without a socket of the
    /// operator's choice it does not start.
    pub required: bool,
}

impl PageListen {
    /// Returns the socket, if a run does not start without it.
    pub fn if_required(self) -> Option<SocketAddr> {
        self.required.then_some(self.socket)
    }
}

impl Listen {
    /// Returns the sockets without which a run does not start, with the key of each group.
    pub(crate) fn required_sockets(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> + '_ {
        let is_optional = |page: Option<PageListen>| page.is_some_and(|page| !page.required);
        let (metrics, status) = (is_optional(self.metrics), is_optional(self.status));
        self.sockets().filter(move |(key, _)| !(*key == "metrics" && metrics || *key == "status" && status))
    }

    /// Returns true if clients' packets are intercepted over IPv4 alone, so that their IPv6 traffic bypasses this box.
    /// A box on loopback has no clients.
    pub fn ipv6_bypasses(&self) -> bool {
        self.intercept != Intercept::None && !self.http.serves(Family::Ipv6) && !self.http.is_loopback()
    }

    /// Returns true if a listener of clients has an address of the family.
    pub fn serves(&self, family: Family) -> bool {
        self.web().chain(&self.dns).any(|sockets| sockets.serves(family))
    }

    /// Returns the sockets of clients' HTTP and TLS.
    pub fn web(&self) -> impl Iterator<Item = &Sockets> {
        std::iter::once(&self.http).chain(&self.tls)
    }

    /// Returns every socket, with the key of its group.
    pub fn sockets(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> + '_ {
        let tcp = self.tcp.as_ref().map(|tcp| &tcp.sockets);
        let clients =
            [("http", Some(&self.http)), ("tls", self.tls.as_ref()), ("dns", self.dns.as_ref()), ("tcp", tcp)];
        let clients = clients.into_iter().filter_map(|(key, sockets)| Some((key, sockets?)));
        let page = |listen: Option<PageListen>| listen.map(|page| page.socket);
        let own = [
            ("metrics", page(self.metrics)),
            ("status", page(self.status)),
            ("health", self.health),
            ("image_metrics", self.image_metrics),
        ];
        let own = own.into_iter().filter_map(|(key, socket)| socket.map(|socket| (key, socket)));
        clients.flat_map(|(key, sockets)| sockets.iter().map(move |socket| (key, socket))).chain(own)
    }

    /// Returns the sockets that an HTTP request could reach, with the key of each.
    pub fn http_sockets(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> + '_ {
        self.sockets().filter(|(key, _)| *key != "dns")
    }

    /// Returns the listeners with DNS at these addresses alone. Without addresses, nothing changes.
    #[must_use]
    pub fn with_dns_at(&self, addresses: &[IpAddr]) -> Self {
        let port = self.dns.as_ref().map(Sockets::port);
        let sockets: Vec<SocketAddr> =
            port.iter().flat_map(|port| addresses.iter().map(|at| SocketAddr::new(*at, *port))).collect();
        Self { dns: Sockets::new(&sockets).ok().or_else(|| self.dns.clone()), ..self.clone() }
    }

    /// Returns the listeners as a machine without IPv6 can bind them: without `[::]` beside another address.
    #[must_use]
    pub fn without_ipv6_wildcards(&self) -> Self {
        let left = |sockets: &Option<Sockets>| sockets.as_ref().map(Sockets::without_ipv6_wildcard);
        let tcp = self.tcp.clone();
        let tcp = tcp.map(|tcp| OtherPorts { sockets: tcp.sockets.without_ipv6_wildcard(), ..tcp });
        Self {
            http: self.http.without_ipv6_wildcard(),
            tls: left(&self.tls),
            dns: left(&self.dns),
            tcp,
            ..self.clone()
        }
    }
}

/// The way in which client packets for other addresses reach the listeners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intercept {
    /// By an nft `redirect` rule. Envoy reads the original destination from conntrack.
    Redirect,
    /// By an nft `tproxy` rule. The listeners are transparent sockets (`CAP_NET_ADMIN`).
    Tproxy,
    /// Not at all: clients come because DNS steers them.
    None,
}

/// The times of an orderly end (SIGTERM).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainTimes {
    /// The time in which it serves on, so that balancers notice.
    pub wait: Duration,
    /// The longest time for requests under way, after the wait.
    pub time: Duration,
}

/// The hosts that this box may reach on the wired side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// Resolvers for the names of origins, at least one. Never this box's own DNS.
    pub resolvers: Vec<SocketAddr>,
    /// Ports that clients may reach through the proxy, at least one.
    pub ports: BTreeSet<u16>,
    /// Private, loopback, link-local or multicast ranges that are reachable nevertheless.
    pub allow_private: Vec<IpNet>,
    /// Ranges that are never reachable, even if another key allows them. An example is this box's public address behind
    /// a NAT.
    pub deny: Vec<IpNet>,
    /// Origins with a fixed address and port, which replace DNS and the URL's port.
    pub map: BTreeMap<HostName, SocketAddr>,
}
