//! The packet rules of `proxy.siblings`: a connection that began at a sibling goes on there when its client moves here.
//!
//! Both boxes hold the proxy's addresses. The client's packets thus end here, where no socket knows the connection. The
//! kernel would reset it. The rules send these packets to the siblings instead. The sibling's responses reach the client
//! by the usual routes, through this box if it is the clients' gateway.
//!
//! A connection of nobody (a box has restarted, a sibling is dead) is reset after [`PATIENCE`], as without the rules.

use std::fmt::Write as _;
use std::net::IpAddr;

use crate::config::{Family, Proxy, Settings};

/// The time in which a sibling has to respond to a connection that is unknown here. Siblings are some ten milliseconds
/// apart. A client that waits for a dead connection waits for this time, up to its next retransmission.
const PATIENCE: &str = "1s";
/// The time for which a set keeps an idle connection. It is asked for again after that.
const KEPT: &str = "60s";
/// The largest number of moved connections in a set. Further ones are reset, as without the rules.
const MOST: u32 = 65_536;

/// Returns the names of the tables that [`tables`] may make.
pub(super) fn names() -> [String; 2] {
    [Family::Ipv4, Family::Ipv6].map(name)
}

/// Returns one table for each family that has siblings and proxy addresses: its name and its rule set. Loading a rule
/// set again replaces it.
///
/// `dup` exists in the tables of one family alone, so these rules are not in the table of the others.
pub(super) fn tables(settings: &Settings, interface: &str) -> Vec<(String, String)> {
    let ports: Vec<String> = settings.listen.web().map(|sockets| sockets.port().to_string()).collect();
    let table = |family: Family| {
        let of_family = |addresses: &[IpAddr]| -> Vec<String> {
            addresses.iter().filter(|one| Family::of(**one) == family).map(ToString::to_string).collect()
        };
        let Proxy { addresses, siblings, .. } = &settings.proxy;
        let (own, siblings) = (of_family(addresses), of_family(siblings));
        (!own.is_empty() && !siblings.is_empty())
            .then(|| (name(family), table(family, interface, &own.join(", "), &ports.join(", "), &siblings)))
    };
    [Family::Ipv4, Family::Ipv6].into_iter().filter_map(table).collect()
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

fn table(family: Family, clients: &str, own: &str, ports: &str, siblings: &[String]) -> String {
    let (name, ip) = (name(family), word(family));
    let mut out = format!("table {name}\ndelete table {name}\n\ntable {name} {{\n");
    let address = if family == Family::Ipv4 { "ipv4_addr" } else { "ipv6_addr" };
    for (set, timeout) in [("asked", KEPT), ("waiting", PATIENCE), ("elsewhere", KEPT)] {
        let _ = writeln!(
            out,
            "\tset {set} {{\n\
             \t\ttype {address} . inet_service . {address} . inet_service\n\
             \t\tsize {MOST}\n\
             \t\tflags dynamic,timeout\n\
             \t\ttimeout {timeout}\n\
             \t}}\n"
        );
    }
    let connection = format!("{ip} saddr . tcp sport . {ip} daddr . tcp dport");
    let of_response = format!("{ip} daddr . tcp dport . {ip} saddr . tcp sport");
    // IPv6 takes packets with an own address as source. IPv4 takes them by `accept_local`, for the responses alone.
    let forged = match family {
        Family::Ipv4 => "\t\tiifname != \"lo\" fib saddr type local drop\n",
        Family::Ipv6 => "",
    };
    let copies: Vec<String> = siblings.iter().map(|sibling| format!("dup to {sibling}")).collect();
    let copies = copies.join(" ");
    let _ = write!(
        out,
        "\tchain moved {{\n\
         \t\ttype filter hook prerouting priority mangle - 20; policy accept;\n\n\
         \t\tiifname \"lo\" accept\n\
         \t\t# a sibling responds to a client that is here now\n\
         \t\tiifname != \"{clients}\" {ip} saddr {{ {own} }} tcp sport {{ {ports} }} fib daddr type != local jump responses\n\
         {forged}\
         \t\t{ip} daddr != {{ {own} }} accept\n\
         \t\ttcp dport != {{ {ports} }} accept\n\
         \t\ttcp flags & (fin | syn | rst | ack) == syn accept\n\
         \t\tct state established ct direction original accept\n\
         \t\t# a sibling's copy of a connection that is not here: a reset would end it where it is\n\
         \t\tiifname != \"{clients}\" drop\n\
         \t\t# a connection that began elsewhere: the siblings are asked once, and get all of it if one responds\n\
         \t\t{connection} != @asked add @asked {{ {connection} }} add @waiting {{ {connection} }}\n\
         \t\t{connection} != @elsewhere {connection} != @waiting accept\n\
         \t\t{copies} drop\n\
         \t}}\n\n\
         \tchain responses {{\n\
         \t\t{of_response} @asked update @elsewhere {{ {of_response} }}\n\
         \t\taccept\n\
         \t}}\n\n\
         \tchain copies {{\n\
         \t\ttype filter hook output priority filter; policy accept;\n\n\
         \t\t# no sibling is among the clients: copies would come back\n\
         \t\toifname \"{clients}\" {ip} daddr {{ {own} }} drop\n\
         \t}}\n\
         }}\n"
    );
    out
}
