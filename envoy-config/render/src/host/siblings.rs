//! The packet rules of `proxy.siblings`: a connection that began at a sibling goes on there when its client moves here.
//!
//! Both boxes hold the proxy's addresses, so the client's packets end here, where no socket knows their connection. The
//! kernel would reset it. An intercepted connection would reach its origin, which would reset it as well. The rules copy
//! these packets to the siblings instead:
//!
//! 1. The box of the client copies the packets of an unknown connection to every sibling, for [`PATIENCE`].
//! 2. The sibling that has the connection takes them, and copies one of them back. Any other one drops them.
//! 3. After such a copy, the siblings get all packets of the connection. Without one, it is treated as without the rules:
//!    reset at the proxy's address, and forwarded to an origin.
//!
//! A client may ask the siblings for [`RATE`] connections, [`BURST`] at once. Its further ones are treated as without the
//! rules. A copy counts only if it comes in by the interface that leads to a sibling.
//!
//! A sibling responds by the usual routes, through this box if it is the clients' gateway.

use std::fmt::Write as _;
use std::net::IpAddr;

use longhaul_config::{Family, Intercept, Proxy, Settings};

use super::machine::Machine;

/// The time in which a sibling has to copy a packet back. Siblings are some ten milliseconds apart. A client with a dead
/// connection waits for this time, and until it sends its next packet.
const PATIENCE: &str = "1s";
/// The time between two packets of one connection that are copied back. One of them may be lost.
const AGAIN: &str = "200ms";
/// The time after which the siblings get a copy of an unknown connection again.
const RETRIED: &str = "60s";
/// The time for which an idle connection of a sibling is known. After that, the siblings get a copy again.
const KEPT: &str = "10m";
/// The largest number of connections in a set. Further ones are treated as without the rules.
const MOST: u32 = 65_536;
/// The connections for which one source may ask the siblings. A client that moves has a few dozen. A source that sends
/// packets of made-up connections fills no set with this rate: each is in `asked` for [`RETRIED`].
const RATE: &str = "10/second";
const BURST: &str = "500";
/// The time after which a source without unknown connections is forgotten. Its burst is whole again by then.
const SOURCE_KEPT: &str = "30s";
/// The match of the first packet of a connection.
const FIRST: &str = "tcp flags & (fin | syn | rst | ack) == syn";
/// The match of a connection that this box knows from its first packet. The conntrack entry of a connection under way
/// may begin with a response, and has the other direction.
const KNOWN: &str = "ct state established ct direction original";

/// Returns the names of the tables that [`tables`] may make.
pub fn names() -> [String; 2] {
    Family::BOTH.map(name)
}

/// Returns one table for each family that has siblings and proxy addresses: its name and its rule set. Loading a rule
/// set again replaces it.
///
/// `dup` exists in the tables of one family alone, so these rules are not in the table of the others.
pub(super) fn tables(settings: &Settings, machine: &Machine) -> Vec<(String, String)> {
    let listen = &settings.listen;
    let clients = machine.clients_in_nft();
    let set = |words: Vec<String>| (!words.is_empty()).then(|| format!("{{ {} }}", words.join(", ")));
    let Some(ports) = set(listen.web().map(|sockets| sockets.port().to_string()).collect()) else { return Vec::new() };
    let intercepted =
        set([80, 443].into_iter().zip(listen.web()).map(|(port, _): (u16, _)| port.to_string()).collect());
    let from_siblings = set(machine.to_siblings.iter().map(|device| format!("\"{device}\"")).collect());
    let table = |family: Family| {
        let of_family = |addresses: &[IpAddr]| -> Vec<String> {
            addresses.iter().filter(|one| Family::of(**one) == family).map(ToString::to_string).collect()
        };
        let Proxy { addresses, siblings, .. } = &settings.proxy;
        let copies: Vec<String> = of_family(siblings).iter().map(|sibling| format!("dup to {sibling}")).collect();
        let rules = Rules {
            family,
            clients: &clients,
            from_siblings: from_siblings.as_deref(),
            own: &set(of_family(addresses))?,
            ports: &ports,
            // A `tproxy` rule gives packets under way to a listener, whatever connection they belong to.
            intercepted: intercepted.as_deref().filter(|_| listen.intercept == Intercept::Redirect),
            copy: &copies.join(" "),
        };
        (!copies.is_empty()).then(|| (name(family), rules.table()))
    };
    Family::BOTH.into_iter().filter_map(table).collect()
}

fn name(family: Family) -> String {
    format!("{} longhaul", word(family))
}

/// Returns the family as nft writes it.
fn word(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "ip",
        Family::Ipv6 => "ip6",
    }
}

/// The words of the rules of one family.
struct Rules<'w> {
    family: Family,
    /// The interfaces to the clients, as nft matches them.
    clients: &'w str,
    /// The set of interfaces to the siblings, if they are known.
    from_siblings: Option<&'w str>,
    /// The set of the proxy's addresses.
    own: &'w str,
    /// The set of ports on which the listeners serve.
    ports: &'w str,
    /// The set of origins' ports that are redirected to the listeners.
    intercepted: Option<&'w str>,
    /// The statements that copy a packet to every sibling.
    copy: &'w str,
}

impl Rules<'_> {
    /// Returns the table with its sets and chains.
    fn table(&self) -> String {
        let name = name(self.family);
        let mut out = format!("table {name}\ndelete table {name}\n\ntable {name} {{\n");
        for (set, timeout) in [("asked", RETRIED), ("waiting", PATIENCE), ("elsewhere", KEPT), ("told", AGAIN)] {
            out.push_str(&self.set(set, timeout));
        }
        out.push_str(&self.sources());
        out.push_str(&self.all());
        out.push_str(&self.to_proxy());
        if self.intercepted.is_some() {
            out.push_str(&self.to_origin());
        }
        let Self { clients, own, .. } = self;
        let _ = write!(
            out,
            "\n\tchain loops {{\n\
             \t\ttype filter hook output priority filter; policy accept;\n\n\
             \t\t# no sibling is among the clients: copies would come back\n\
             \t\toifname {clients} {ip} daddr {own} drop\n\
             \t}}\n\
             }}\n",
            ip = word(self.family)
        );
        out
    }

    /// Returns a set of connections, by the addresses and ports of the client's packets.
    fn set(&self, name: &str, timeout: &str) -> String {
        let address = match self.family {
            Family::Ipv4 => "ipv4_addr",
            Family::Ipv6 => "ipv6_addr",
        };
        format!(
            "\tset {name} {{\n\
             \t\ttype {address} . inet_service . {address} . inet_service\n\
             \t\tsize {MOST}\n\
             \t\tflags dynamic,timeout\n\
             \t\ttimeout {timeout}\n\
             \t}}\n\n"
        )
    }

    /// Returns the set of sources that asked the siblings lately.
    fn sources(&self) -> String {
        let address = match self.family {
            Family::Ipv4 => "ipv4_addr",
            Family::Ipv6 => "ipv6_addr",
        };
        format!(
            "\tset sources {{\n\t\ttype {address}\n\t\tsize {MOST}\n\t\tflags dynamic,timeout\n\
             \t\ttimeout {SOURCE_KEPT}\n\t}}\n\n"
        )
    }

    /// Returns the rule that treats a source with too many unknown connections as without the rules.
    fn too_many(&self) -> String {
        let source = match self.family {
            Family::Ipv4 => "ip saddr",
            // A subscriber has all addresses of a network of 64 bits.
            Family::Ipv6 => "ip6 saddr & ffff:ffff:ffff:ffff::",
        };
        format!("\t\tupdate @sources {{ {source} limit rate over {RATE} burst {BURST} packets }} accept\n")
    }

    /// Returns the connection of a client's packet.
    fn connection(&self) -> String {
        let ip = word(self.family);
        format!("{ip} saddr . tcp sport . {ip} daddr . tcp dport")
    }

    /// Returns the chain that sees every packet first.
    fn all(&self) -> String {
        let Self { family, clients, own, ports, .. } = self;
        let ip = word(*family);
        // IPv6 takes packets with an own address as source. IPv4 takes them by `accept_local`, which is here for the
        // responses of siblings alone.
        let forged = match family {
            Family::Ipv4 => "\t\tfib saddr type local drop\n",
            Family::Ipv6 => "",
        };
        let to_origin = self.intercepted.map(|web| {
            let reset = |set| {
                format!(
                    "\t\tiifname != {clients} tcp sport {web} tcp flags & (rst | ack) == rst \
                     {ip} daddr . tcp dport . {ip} saddr . tcp sport @{set} drop\n"
                )
            };
            format!(
                "\t\t# the origin of an intercepted connection does not know it, and its reset would end it\n\
                 {}{}\
                 \t\ttcp dport {web} fib daddr type != local goto to_origin\n",
                // The client's routes may still lead to the sibling.
                reset("waiting"),
                reset("told")
            )
        });
        format!(
            "\tchain siblings {{\n\
             \t\ttype filter hook prerouting priority mangle - 20; policy accept;\n\n\
             \t\tiifname \"lo\" accept\n\
             \t\t# a sibling responds to a client that is here now\n\
             \t\tiifname != {clients} {ip} saddr {own} tcp sport {ports} fib daddr type != local accept\n\
             {forged}\
             \t\t{ip} daddr {own} tcp dport {ports} goto to_proxy\n\
             {}\
             \t}}\n",
            to_origin.unwrap_or_default()
        )
    }

    /// Returns the chains for packets to the proxy's addresses.
    fn to_proxy(&self) -> String {
        let (Self { clients, copy, .. }, connection) = (self, self.connection());
        format!(
            "\n\tchain to_proxy {{\n\
             {}\
             \t\tiifname != {clients} goto copies_to_proxy\n\
             \t\t{KNOWN} accept\n\
             \t\t{connection} @elsewhere {copy} drop\n\
             \t\t{connection} @waiting {copy} drop\n\
             \t\t{connection} @asked accept\n\
             {}\
             \t\tadd @asked {{ {connection} }} add @waiting {{ {connection} }} {copy} drop\n\
             \t}}\n\n\
             \tchain copies_to_proxy {{\n\
             {}\
             \t\t{KNOWN} {connection} != @told add @told {{ {connection} }} {copy}\n\
             \t\t{KNOWN} accept\n\
             \t\t# a reset would end the connection where it is\n\
             \t\tdrop\n\
             \t}}\n",
            self.first(),
            self.too_many(),
            self.copied_back()
        )
    }

    /// Returns the chains for packets to origins. Any of these may be of a connection that nobody intercepted, so the
    /// origin gets the first ones as well.
    fn to_origin(&self) -> String {
        let (Self { clients, copy, .. }, connection) = (self, self.connection());
        format!(
            "\n\tchain to_origin {{\n\
             {}\
             \t\tiifname != {clients} goto copies_to_origin\n\
             \t\t# before the next rule, because conntrack follows the packets that the origin got\n\
             \t\t{connection} @elsewhere {copy} drop\n\
             \t\t{connection} @waiting {copy} accept\n\
             \t\t{KNOWN} accept\n\
             \t\t{connection} @asked accept\n\
             {}\
             \t\tadd @asked {{ {connection} }} add @waiting {{ {connection} }} {copy} accept\n\
             \t}}\n\n\
             \tchain copies_to_origin {{\n\
             {}\
             \t\t{KNOWN} ct status dnat {connection} != @told add @told {{ {connection} }} {copy}\n\
             \t\t{KNOWN} ct status dnat accept\n\
             \t\t# a client of this box does not come in there: a late copy\n\
             \t\tfib saddr oif {clients} drop\n\
             \t}}\n",
            self.first(),
            self.too_many(),
            self.copied_back()
        )
    }

    /// Returns the rules for the first packet of a connection. An earlier one of the same ports may have moved.
    fn first(&self) -> String {
        let connection = self.connection();
        let rule = |set| format!("\t\t{FIRST} {connection} @{set} delete @{set} {{ {connection} }}\n");
        ["asked", "elsewhere"].map(rule).concat() + &format!("\t\t{FIRST} accept\n")
    }

    /// Returns the rules that take what a sibling copied back.
    fn copied_back(&self) -> String {
        let connection = self.connection();
        // Another interface may lead to anybody. Where a sibling's own one is not known, its copies are believed anywhere.
        let from = self.from_siblings.map(|devices| format!("iifname {devices} ")).unwrap_or_default();
        let rule = |set| format!("\t\t{from}{connection} @{set} update @elsewhere {{ {connection} }} drop\n");
        format!("\t\t# a sibling has the connection\n{}{}", rule("asked"), rule("elsewhere"))
    }
}
