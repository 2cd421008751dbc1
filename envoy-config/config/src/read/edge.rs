//! `link`, `proxy`, `listen`, `upstream`: the link, the addresses of this box, and the hosts it may reach.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ipnet::IpNet;

use crate::device_name::DeviceName;
use crate::diagnostic::Problem;
use crate::keys::{self, DefaultValue};
use crate::names::HostName;
use crate::reader::{Reader, Section, Setting};
use crate::settings::{
    DialledPorts, DrainTimes, EngineWish, Fill, Intercept, Link, Listen, OtherPorts, PageListen, Price, Proxy,
    RoleName, Upstream, Workers,
};
use crate::sockets::Sockets;
use crate::yaml::NodeValue;

use super::ports;
use super::sockets::{sockets, sockets_or_off};

/// The most addresses of CoreDNS's `forward` plugin.
const MOST_RESOLVERS: usize = 15;
/// The longest `id`, in bytes: that of a host name on Linux.
const LONGEST_ID: usize = 64;

pub(super) fn link(reader: &mut Reader, top: &Section<'_>) -> Option<Link> {
    let section = reader.section(top, "link");
    let rtt = reader.required(
        &section,
        "rtt",
        "the round-trip time of the slow link without queueing, such as `rtt: 600ms`",
        Reader::time,
    );
    let down = reader.required(&section, "down", "the rate to clients, such as `down: 20mbit`", Reader::rate);
    let up = reader.required(&section, "up", "the rate from clients, such as `up: 5mbit`", Reader::rate);
    let words = [("free", Price::Free), ("metered", Price::Metered)];
    let price = reader.optional(&section, "price", |reader, setting| reader.word(setting, &words));
    let mtu = reader.optional(&section, "mtu", mtu);
    let fill = reader.optional(&section, "fill", fill);
    let device = reader.optional(&section, "device", device);
    Some(Link { rtt: rtt?, down: down?, up: up?, price: price?, mtu: mtu?, fill: fill?, device: device? })
}

/// Returns None for a value that is refused, and Some(None) for a size that the kernel finds.
#[allow(clippy::option_option, reason = "both are optional")]
pub(super) fn mtu(reader: &mut Reader, setting: &Setting<'_>) -> Option<Option<u32>> {
    match setting.text() {
        Some("auto") => Some(None),
        _ => reader.number(setting).map(Some),
    }
}

pub(super) fn fill(reader: &mut Reader, setting: &Setting<'_>) -> Option<Fill> {
    if setting.is_off() {
        return Some(Fill::Off);
    }
    let what = format!("`auto`, `off`, or a part of the link from {}% to {}%", Fill::LEAST, Fill::MOST);
    let written = match reader.text(setting, &what, "")? {
        "auto" => Some(Fill::Auto),
        text => Fill::percent(text),
    };
    if written.is_none() {
        reader.expected(setting, &what, "write `fill: auto`; a lower part leaves room for what bypasses Longhaul");
    }
    written
}

/// Reads the network interface of the link. The outer None is a problem, and the inner None means `off`.
#[allow(clippy::option_option, reason = "the reader's own None means: already reported")]
fn device(reader: &mut Reader, setting: &Setting<'_>) -> Option<Option<DeviceName>> {
    if setting.is_off() {
        return Some(None);
    }
    let (what, help) =
        ("the name of one network interface, or `off`", "write a name such as `wan0`; `ip link` lists them");
    let device = DeviceName::parse(reader.text(setting, what, help)?);
    if device.is_none() {
        reader.expected(setting, what, help);
    }
    device.map(Some)
}

pub(super) fn proxy(reader: &mut Reader, top: &Section<'_>, kind: RoleName) -> Option<Proxy> {
    let section = reader.section(top, "proxy");
    let what = "the addresses where clients reach this box, such as `addresses: [198.51.100.12]`";
    let read = |reader: &mut Reader, setting: &Setting<'_>| {
        let entries = reader.list(setting, entry);
        let entries = reader.without_duplicates(setting, entries)?;
        own_addresses(reader, setting, &entries)
    };
    let addresses = match kind {
        RoleName::Edge | RoleName::Remote => reader.required(&section, "addresses", what, read),
        // Clients never connect to a ground.
        RoleName::Ground => reader.optional_or(&section, "addresses", (Vec::new(), Vec::new()), read),
    };
    let secure_names = reader.optional(&section, "secure_names", |reader, setting| {
        let names = reader.list(setting, Reader::host);
        reader.without_duplicates(setting, names)
    });
    let siblings = reader.optional(&section, "siblings", |reader, setting| {
        let siblings = reader.list(setting, sibling);
        reader.without_duplicates(setting, siblings)
    });
    let (addresses, ranges) = addresses?;
    Some(Proxy { addresses, ranges, secure_names: secure_names?, siblings: siblings? })
}

/// Reads an entry of `proxy.addresses`: an address becomes a range of one. Text with the length of one is neither.
fn entry(reader: &mut Reader, setting: &Setting<'_>) -> Option<IpNet> {
    let is_range = |range: &IpNet| range.addr() == range.network() && range.prefix_len() < range.max_prefix_len();
    let range = match &setting.node.value {
        NodeValue::Scalar(text) => text.parse::<IpNet>().ok().filter(is_range),
        _ => None,
    };
    range.or_else(|| client_facing(reader, setting).map(IpNet::from))
}

/// The fewest addresses of a range, as bits: the first and the last are not used.
const LEAST_RANGE_BITS: u8 = 2;

fn same_family(range: &IpNet, address: IpAddr) -> bool {
    range.addr().is_ipv4() == address.is_ipv4()
}

/// Tells addresses from ranges.
fn own_addresses(reader: &mut Reader, setting: &Setting<'_>, entries: &[IpNet]) -> Option<(Vec<IpAddr>, Vec<IpNet>)> {
    let is_address = |entry: &&IpNet| entry.prefix_len() == entry.max_prefix_len();
    let addresses: Vec<IpAddr> = entries.iter().take_while(is_address).map(IpNet::addr).collect();
    let ranges = entries.get(addresses.len()..).unwrap_or_default();
    if addresses.is_empty() {
        reader.expected(setting, "at least one address", "moved URLs point to it, and DNS responses without a range");
        return None;
    }
    for (index, range) in ranges.iter().enumerate() {
        let (what, help) = if is_address(&range) {
            (format!("{} behind a range", range.addr()), "write the ranges behind the addresses")
        } else if range.max_prefix_len() - range.prefix_len() < LEAST_RANGE_BITS {
            (format!("{range} is too small"), "write a range of at least four addresses, such as `198.18.0.0/16`")
        } else if ranges.iter().take(index).any(|other| same_family(range, other.addr())) {
            (format!("{range} is a second range of its family"), "write one range of each family")
        } else if !addresses.iter().any(|address| same_family(range, *address)) {
            (
                format!("{range} has no address of its family beside it"),
                "add the address of this box in that family: health checks use it",
            )
        } else if let Some(within) = addresses.iter().find(|address| range.contains(*address)) {
            (
                format!("{within} is in the range {range}"),
                "write a range of its own: a server gets each of its addresses",
            )
        } else {
            continue;
        };
        reader.bad(setting, what, help);
        return None;
    }
    Some((addresses, ranges.to_vec()))
}

fn client_facing(reader: &mut Reader, setting: &Setting<'_>) -> Option<IpAddr> {
    let address = reader.address(setting)?;
    let reserved = address.is_unspecified() || address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST);
    if reserved {
        reader.bad(
            setting,
            format!("clients cannot connect to {address}"),
            "write the address that clients use for this box",
        );
        return None;
    }
    Some(address)
}

/// Reads an address to which a packet rule sends packets. A link-local one would need an interface.
fn sibling(reader: &mut Reader, setting: &Setting<'_>) -> Option<IpAddr> {
    let address = reader.address(setting)?;
    let nowhere = address.is_unspecified() || address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST);
    let link_local = matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
    if nowhere || link_local || address.is_loopback() {
        reader.bad(
            setting,
            format!("no packet rule can send packets to {address}"),
            "write the sibling's address on a network that both boxes are part of, such as a tunnel",
        );
        return None;
    }
    Some(address)
}

/// The port of `listen.dns: auto`.
const DNS_PORT: u16 = 53;

pub(super) fn listen(reader: &mut Reader, top: &Section<'_>) -> Option<Listen> {
    let section = reader.section(top, "listen");
    let http = reader.optional(&section, "http", sockets);
    let tls = reader.optional(&section, "tls", sockets_or_off);
    let dns = reader.optional(&section, "dns", |reader, setting| {
        if setting.text() == Some("auto") {
            return Some((Some(Sockets::of_every_address(DNS_PORT)), true));
        }
        sockets_or_off(reader, setting).map(|sockets| (sockets, false))
    });
    let page = |reader: &mut Reader, setting: &Setting<'_>| {
        let socket = reader.socket_or_off(setting)?;
        let is_default = |socket| default_of(&setting.name).is_some_and(|default| default.parse() == Ok(socket));
        Some(socket.map(|socket| PageListen { socket, required: !is_default(socket) }))
    };
    let metrics = reader.optional(&section, "metrics", page);
    let status = reader.optional(&section, "status", page);
    let health = reader.optional(&section, "health", Reader::socket_or_off);
    let image_metrics = reader.optional(&section, "image_metrics", Reader::socket_or_off);
    let intercept = reader.optional(&section, "intercept", |reader, setting| {
        reader.word(
            setting,
            &[("redirect", Intercept::Redirect), ("tproxy", Intercept::Tproxy), ("none", Intercept::None)],
        )
    });
    let dialled = reader.optional(&section, "tcp", ports::dialled);
    let (dns, dns_is_auto) = dns?;
    let (http, intercept, dialled) = (http?, intercept?, dialled?);
    let dialled = dialled.filter(|_| intercept != Intercept::None);
    Some(Listen {
        tcp: dialled.map(|dialled| OtherPorts { dialled, sockets: http.at_port(DialledPorts::LISTENER) }),
        http,
        tls: tls?,
        dns,
        dns_is_auto,
        metrics: metrics?,
        status: status?,
        health: health?,
        image_metrics: image_metrics?,
        intercept,
    })
}

fn default_of(key: &str) -> Option<&'static str> {
    match keys::row(key)?.default {
        DefaultValue::Is(text) => Some(text),
        _ => None,
    }
}

/// Reads the name of this box. The outer None is a problem, and the inner None means the host name.
#[allow(clippy::option_option, reason = "the reader's own None means: already reported")]
pub(super) fn id(reader: &mut Reader, top: &Section<'_>) -> Option<Option<String>> {
    reader.optional_or(top, "id", None, |reader, setting| {
        let help = "write a name such as ship-7";
        let text = reader.text(setting, "a name of letters, digits, `.`, `-` and `_`", help)?;
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if text.len() > LONGEST_ID || !text.bytes().all(fits) {
            reader.expected(setting, "at most 64 letters, digits, `.`, `-` and `_`", help);
            return None;
        }
        Some(Some(text.to_owned()))
    })
}

pub(super) fn workers(reader: &mut Reader, top: &Section<'_>) -> Option<Workers> {
    reader.optional(top, "workers", |reader, setting| match setting.text() {
        Some("auto") => Some(Workers::Auto),
        _ => reader.number(setting).map(Workers::Count),
    })
}

pub(super) fn engine(reader: &mut Reader, top: &Section<'_>) -> Option<EngineWish> {
    reader.optional(top, "engine", |reader, setting| {
        reader.word(setting, &[("wasm", EngineWish::Wasm), ("native", EngineWish::Native), ("auto", EngineWish::Auto)])
    })
}

/// Reads the times of an orderly end. With a health endpoint, balancers get time to notice.
pub(super) fn drain(reader: &mut Reader, top: &Section<'_>, health: bool) -> Option<DrainTimes> {
    let section = reader.section(top, "drain");
    let wait = reader.optional_unless(&section, "wait", health, Reader::time);
    let time = reader.optional(&section, "time", Reader::time);
    Some(DrainTimes { wait: wait?, time: time? })
}

pub(super) fn upstream(reader: &mut Reader, top: &Section<'_>, kind: RoleName) -> Option<Upstream> {
    let section = reader.section(top, "upstream");
    let what = "resolvers for the names of origins, such as `resolvers: [9.9.9.9]`; never this box's own DNS";
    let read = |reader: &mut Reader, setting: &Setting<'_>| {
        if let NodeValue::List(items) = &setting.node.value
            && let Some(excess) = items.get(MOST_RESOLVERS)
        {
            let label = format!("expected at most {MOST_RESOLVERS} resolvers, found {}", items.len());
            let problem = Problem::error("too many `upstream.resolvers`", excess.place.clone(), label);
            reader.problems.push(problem.help("remove this one and all behind it: CoreDNS takes no more"));
            return None;
        }
        let resolvers = reader.list(setting, |reader, item| reader.socket_or_address(item, 53));
        let resolvers = reader.without_duplicates(setting, resolvers)?;
        if resolvers.is_empty() {
            reader.expected(setting, "at least one resolver", "without a resolver no origin is found");
            return None;
        }
        Some(resolvers)
    };
    let resolvers = match kind {
        RoleName::Edge | RoleName::Ground => reader.required(&section, "resolvers", what, read),
        // The ground resolves origins. This box needs a resolver only for the name of the ground.
        RoleName::Remote => reader.optional_or(&section, "resolvers", Vec::new(), read),
    };
    let ports = reader.optional(&section, "ports", |reader, setting| {
        let ports = reader.list(setting, |reader, item| reader.number(item).and_then(|port| u16::try_from(port).ok()));
        let ports = reader.without_duplicates(setting, ports)?;
        if ports.is_empty() {
            reader.expected(setting, "at least one port", "without a port clients reach nothing through the proxy");
            return None;
        }
        Some(ports.into_iter().collect())
    });
    let mut ranges = |key| {
        reader.optional(&section, key, |reader, setting| {
            let ranges = reader.list(setting, Reader::network);
            reader.without_duplicates(setting, ranges)
        })
    };
    let (allow_private, deny) = (ranges("allow_private"), ranges("deny"));
    let map = reader.optional(&section, "map", map);
    Some(Upstream { resolvers: resolvers?, ports: ports?, allow_private: allow_private?, deny: deny?, map: map? })
}

fn map(reader: &mut Reader, setting: &Setting<'_>) -> Option<BTreeMap<HostName, SocketAddr>> {
    let entries = match &setting.node.value {
        NodeValue::Map(entries) => entries,
        NodeValue::Null => return Some(BTreeMap::new()),
        _ => {
            reader.expected(setting, "names with addresses", "write `map: { www.example.org: 192.0.2.10:8080 }`");
            return None;
        }
    };
    let mut map = BTreeMap::new();
    let mut clean = true;
    for entry in entries {
        let name = format!("{}.{}", setting.name, entry.key);
        let item = Setting { name, node: &entry.node, key_place: entry.key_place.clone() };
        let socket = reader.socket(&item);
        match (HostName::parse(&entry.key), socket) {
            (Ok(host), Some(socket)) => {
                if map.insert(host, socket).is_some() {
                    reader.problems.push(Problem::error(
                        format!("`{}` names the same host twice", setting.name),
                        entry.key_place.clone(),
                        "the same name in another spelling stands above",
                    ));
                    clean = false;
                }
            }
            (Err(error), _) => {
                let title = format!("bad name in `{}`", setting.name);
                reader.problems.push(Problem::error(
                    title,
                    entry.key_place.clone(),
                    format!("expected a host name, found `{}`: {error}", entry.key),
                ));
                clean = false;
            }
            (Ok(_), None) => clean = false,
        }
    }
    clean.then_some(map)
}
