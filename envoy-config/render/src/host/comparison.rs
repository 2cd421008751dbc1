//! The packet rules of `compare`: a share of the clients passes untouched, and the first packets of both groups are
//! copied for the measurement.

use std::fmt::Write as _;
use std::ops::Range;

use longhaul_config::share::{Group, Share};

use super::listener::Listener;
use super::other_ports::OtherPortRules;

/// The packets of each direction of a connection that are copied. A handshake and a first request with its response have
/// fewer.
const FIRST_PACKETS: u8 = 8;
/// The bytes of a packet that are copied: the headers of IPv6 and TCP, with options.
const HEADERS: u8 = 128;
/// The families of addresses, as nft writes them.
const FAMILIES: [&str; 2] = ["ip", "ip6"];

/// Returns the rules that leave packets of the direct group alone, to any of these ports of other hosts.
pub(super) fn pass(share: Share, web: &[Listener], others: Option<&OtherPortRules>) -> String {
    const WHY: &str = "\t\t# `compare`: these clients pass untouched\n";
    let rules = |family: &'static str| {
        let group = of_group(family, "saddr", share.hashes(Group::Direct));
        let dialled = ports(web, family, |listener| listener.from).into_iter();
        let dialled = dialled.chain(others.map(|others| others.dialled.clone()));
        dialled.map(move |ports| format!("\t\ttcp dport {ports} {group} accept\n"))
    };
    std::iter::once(WHY.to_owned()).chain(FAMILIES.into_iter().flat_map(rules)).collect()
}

/// Returns the rules that let QUIC of the direct group pass.
pub(super) fn pass_quic(share: Share) -> String {
    let rule =
        |family| format!("\t\tudp dport 443 {} accept\n", of_group(family, "saddr", share.hashes(Group::Direct)));
    FAMILIES.map(rule).concat()
}

/// Returns the chains that copy packets. They see a client's packets before a redirect changes the address, and the
/// packets to a client after it is changed back.
pub(super) fn copies(share: Share, clients: &str, web: &[Listener]) -> String {
    let (mut asked, mut answered) = (String::new(), String::new());
    let groups = Group::BOTH.map(|group| (group, share.hashes(group)));
    for family in FAMILIES {
        let (Some(from), Some(to)) = (ports(web, family, |one| one.from), ports(web, family, |one| one.to)) else {
            continue;
        };
        for (group, range) in &groups {
            let source = of_group(family, "saddr", range.clone());
            let _ = writeln!(asked, "\t\ttcp dport {from} fib daddr type != local {source} {}", copy(*group));
            if *group == Group::Accelerated {
                // DNS leads these to the proxy's own address.
                let _ = writeln!(asked, "\t\ttcp dport {to} fib daddr type local {source} {}", copy(*group));
            }
            let target = of_group(family, "daddr", range.clone());
            let _ = writeln!(answered, "\t\ttcp sport {} {target} {}", both(web, family), copy(*group));
        }
    }
    format!(
        "\tchain asked {{\n\
         \t\ttype filter hook prerouting priority mangle - 10; policy accept;\n\n\
         \t\tiifname != {clients} accept\n\
         \t\tct original packets > {FIRST_PACKETS} accept\n\
         {asked}\t}}\n\n\
         \tchain answered {{\n\
         \t\ttype filter hook postrouting priority srcnat + 10; policy accept;\n\n\
         \t\toifname != {clients} accept\n\
         \t\tct reply packets > {FIRST_PACKETS} accept\n\
         {answered}\t}}\n"
    )
}

/// Returns the match of clients whose hash is in `range`.
fn of_group(family: &str, field: &str, range: Range<u8>) -> String {
    let (buckets, seed) = (Share::BUCKETS, Share::SEED);
    format!("jhash {family} {field} mod {buckets} seed {seed:#x} {}-{}", range.start, range.end.saturating_sub(1))
}

fn copy(group: Group) -> String {
    format!("log prefix \"{}\" group {} snaplen {HEADERS}", group.prefix(), Share::NFLOG_GROUP)
}

/// Returns the set of one port of each listener that serves the family. None if no listener does.
fn ports(web: &[Listener], family: &str, port: impl Fn(&Listener) -> u16) -> Option<String> {
    set(web.iter().filter(|listener| listener.families().any(|one| one == family)).map(port))
}

/// Returns the set of all ports from which clients get responses.
fn both(web: &[Listener], family: &str) -> String {
    let served = web.iter().filter(|listener| listener.families().any(|one| one == family));
    set(served.flat_map(|listener| [listener.from, listener.to])).unwrap_or_default()
}

fn set(ports: impl Iterator<Item = u16>) -> Option<String> {
    let ports: std::collections::BTreeSet<u16> = ports.collect();
    let words: Vec<String> = ports.iter().map(ToString::to_string).collect();
    (!words.is_empty()).then(|| format!("{{ {} }}", words.join(", ")))
}
