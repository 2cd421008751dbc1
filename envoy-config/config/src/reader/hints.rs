//! Remedies for common slips in values. Each function takes the text of a value and returns what to write instead.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ipnet::IpNet;

use crate::keys::{self, KEYS, Key, ValueType};
use crate::names::{Host, HostName};
use crate::yaml::{Node, NodeValue};

/// Quotes that word processors write.
const CURLY_QUOTES: [char; 8] = ['“', '”', '„', '‘', '’', '‚', '«', '»'];
/// Characters that nobody sees.
const INVISIBLE: [char; 8] =
    ['\u{a0}', '\u{202f}', '\u{2007}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}', '\u{feff}'];
const PORTS: &str = "a port is a number from 1 to 65535";

/// Returns the remedy of a slip that a value of any kind may have.
pub(super) fn of_any(text: &str) -> Option<String> {
    if text.contains(CURLY_QUOTES) {
        return Some(format!("write straight quotes, or none: `{}`", text.trim_matches(CURLY_QUOTES)));
    }
    if let Some(character) = text.chars().find(|character| INVISIBLE.contains(character)) {
        return Some(format!("remove the invisible character U+{:04X} from the value", u32::from(character)));
    }
    if is_variable(text) {
        return Some("variables are not expanded: write the value itself".to_owned());
    }
    let bare = text.trim_end_matches([';', ',']);
    (bare != text && !bare.is_empty()).then(|| format!("remove the `{}` at the end of the value", &text[bare.len()..]))
}

/// Returns `text` as a value to type: in quotes if its first character means something else to YAML.
fn typed(text: &str) -> String {
    if text.starts_with(['[', '{', '*', '&', '!', '%', '@', '`', '|', '>', '#']) {
        format!("\"{text}\"")
    } else {
        format!("`{text}`")
    }
}

/// Returns true if a connection to `address` can reach one machine.
fn is_of_one_machine(address: &IpAddr) -> bool {
    !(address.is_unspecified() || address.is_multicast() || *address == IpAddr::V4(Ipv4Addr::BROADCAST))
}

/// Removes the brackets around an IPv6 address, which belong to a port.
fn without_brackets(text: &str) -> &str {
    text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text)
}

/// Returns true if a shell or a template would replace a part of `text`.
pub(super) fn is_variable(text: &str) -> bool {
    let named = text.strip_prefix('$').and_then(|rest| rest.chars().next());
    text.contains("${") || text.contains("{{") || named.is_some_and(|first| first.is_ascii_alphabetic() || first == '(')
}

/// Returns the remedy for a text that is no `ADDRESS:PORT`. `example` is a right one.
pub(super) fn socket(text: &str, example: SocketAddr) -> String {
    let with_port = |port: &str| match port.parse() {
        Ok(port) if port != 0 => format!("write {}", typed(&SocketAddr::new(example.ip(), port).to_string())),
        _ => PORTS.to_owned(),
    };
    let bare = without_scheme(text);
    if bare != text {
        return match bare.parse::<SocketAddr>() {
            Ok(socket) if socket.port() != 0 => format!("write {}: no scheme, no path", typed(&socket.to_string())),
            _ => format!("write an address and a port, such as `{example}`: no scheme, no path"),
        };
    }
    if let Ok(Host::Address(address)) = Host::parse(text) {
        let whole = SocketAddr::new(address, example.port());
        return match address {
            IpAddr::V4(_) => format!("add a port: `{whole}`"),
            IpAddr::V6(_) => format!("write an IPv6 address in brackets and quotes, with a port: \"{whole}\""),
        };
    }
    if is_digits(text) {
        return with_port(text);
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return format!("write an address and a port, such as `{example}`");
    };
    match Host::parse(host) {
        _ if matches!(host, "" | "*") && is_digits(port) => with_port(port),
        Ok(Host::Address(_)) if is_digits(port) => PORTS.to_owned(),
        Ok(Host::Address(address)) => {
            let socket = SocketAddr::new(address, service(port).unwrap_or(example.port()));
            format!("write the port as a number: {}", typed(&socket.to_string()))
        }
        Ok(Host::Name(name)) if name.as_str() == "localhost" && port.parse::<u16>().is_ok_and(|port| port != 0) => {
            format!("names are not accepted here: write `127.0.0.1:{port}`")
        }
        Ok(Host::Name(_)) => format!("names are not accepted here: write the address, such as `{example}`"),
        Err(_) => format!("write an address and a port, such as `{example}`"),
    }
}

/// Returns the remedy for a text that is no resolver.
pub(super) fn resolver(text: &str) -> String {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("https" | "tls" | "quic" | "h3" | "sdns") => {
            "DNS over HTTPS, TLS or QUIC is not supported: write the address of a resolver on port 53, such as `9.9.9.9`"
                .to_owned()
        }
        Some(_) => format!("no scheme: write the address alone, such as {}", typed(bare_or(text, "9.9.9.9"))),
        None if range_at(text).is_some_and(|address| is_of_one_machine(&address)) => {
            let (address, _) = text.split_once('/').unwrap_or((text, ""));
            format!("write {}: one address, not a range", typed(without_brackets(address)))
        }
        None if text.contains('/') => {
            "no file is read here: write the addresses after `nameserver` in it, such as `9.9.9.9`".to_owned()
        }
        None => match text.rsplit_once(':') {
            Some((host, _)) if host.parse::<IpAddr>().is_ok() => PORTS.to_owned(),
            _ => "write an address, such as `9.9.9.9`: a name would need a resolver itself".to_owned(),
        },
    }
}

/// Returns the address of a text such as `192.0.2.53/24`.
fn range_at(text: &str) -> Option<IpAddr> {
    let (address, length) = text.split_once('/')?;
    if is_digits(length) { without_brackets(address).parse().ok() } else { None }
}

fn bare_or<'t>(text: &'t str, other: &'t str) -> &'t str {
    let bare = without_scheme(text);
    let is_socket = bare.parse::<SocketAddr>().is_ok_and(|socket| socket.port() != 0);
    if bare.parse::<IpAddr>().is_ok() || is_socket { bare } else { other }
}

/// Returns the remedy for a text that is no IP address.
pub(super) fn address(text: &str) -> String {
    let bare = without_scheme(text);
    let (host, rest) = bare.split_once('/').unwrap_or((bare, ""));
    let found = |address: IpAddr, why: &str| {
        let usable = is_of_one_machine(&address);
        usable.then(|| format!("write `{address}`: {why}"))
    };
    let octets: Vec<Option<u8>> = bare.split('.').map(|octet| octet.parse().ok()).collect();
    let remedy = if let Ok(socket) = host.parse::<SocketAddr>() {
        found(socket.ip(), "no port stands here")
    } else if let (Ok(address), false) = (without_brackets(host).parse(), rest.is_empty()) {
        found(address, "one address, not a range")
    } else if let Ok(address) = without_brackets(host).parse() {
        found(address, if bare == text { "brackets are for an address with a port" } else { "no scheme, no path" })
    } else {
        match *octets.as_slice() {
            [Some(a), Some(b), Some(c), Some(d)] => found(Ipv4Addr::new(a, b, c, d).into(), "without leading zeros"),
            [_, _, _, _] if bare.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
                Some("each number of an address is from 0 to 255".to_owned())
            }
            _ => None,
        }
    };
    remedy.unwrap_or_else(|| "write an address such as `198.51.100.12`: names are not accepted here".to_owned())
}

/// Returns the remedy for a text that is no `HOST:PORT`. `port` is the usual one.
pub(super) fn host_port(text: &str, port: u16) -> String {
    let bare = without_scheme(text);
    let scheme = if bare == text { "" } else { ", without a scheme" };
    let (host, written) = match bare.rsplit_once(':') {
        Some((host, written)) if Host::parse(bare).is_err() => (host, Some(written)),
        _ => (bare, None),
    };
    match (Host::parse(host), written) {
        (Ok(_), Some(written)) if written.parse::<u16>().is_ok_and(|port| port != 0) => {
            format!("write {}{scheme}", typed(&format!("{host}:{written}")))
        }
        (Ok(_), Some(_)) => PORTS.to_owned(),
        (Ok(Host::Address(IpAddr::V6(address))), None) => format!("add the port: \"[{address}]:{port}\"{scheme}"),
        (Ok(_), None) => format!("add the port: {}{scheme}", typed(&format!("{host}:{port}"))),
        (Err(_), _) => format!("write a name or an address, a colon and a port, such as `ground.example:{port}`"),
    }
}

/// Returns the remedy for a text that is no host name. `below` is true if a name here stands for all names below it.
pub(super) fn host(text: &str, below: bool) -> String {
    let bare = without_scheme(text);
    let bare = bare.strip_prefix("*.").unwrap_or(bare).trim_end_matches('/');
    let bare = match bare.rsplit_once(':') {
        Some((host, port)) if is_digits(port) => host,
        _ => bare,
    };
    match Host::parse(bare) {
        Ok(Host::Name(name)) if text.starts_with("*.") && !below => {
            format!("no wildcard: write each name, such as `www.{name}`")
        }
        Ok(Host::Name(_)) if text.starts_with("*.") => format!("write `{bare}`: it stands for all names below it, too"),
        Ok(Host::Name(_)) if bare != text => format!("write `{bare}`: no scheme, port, path or wildcard"),
        _ => "no scheme, port, path or wildcard".to_owned(),
    }
}

/// Returns the remedy for a text in a list of names and files that is neither. None if no name is in it.
pub(super) fn name_in_url(text: &str) -> Option<String> {
    let bare = without_scheme(text).split('/').next()?;
    let bare = bare.rsplit_once(':').filter(|(_, port)| is_digits(port)).map_or(bare, |(host, _)| host);
    (text.contains("://") && HostName::parse(bare).is_ok()).then(|| format!("write `{bare}`: no scheme, port or path"))
}

/// Returns the remedy for a text that is no range of addresses.
pub(super) fn network(text: &str) -> String {
    if let Some((address, length)) = text.split_once('/')
        && let Ok(address) = address.parse::<IpAddr>()
    {
        if let Some(network) = length.parse().ok().and_then(|mask| IpNet::with_netmask(address, mask).ok()) {
            return format!("write `{}`", network.trunc());
        }
        let most = if address.is_ipv4() { 32 } else { 128 };
        return format!("the length of a prefix is from 0 to {most}");
    }
    "write an address, or a range such as `192.0.2.0/28`".to_owned()
}

/// The most ports that a remedy lists.
const MOST_LISTED: u32 = 16;

/// Returns the remedy for a text that is no whole number from `min` to `max`. `listed` is true for an item of a list.
pub(super) fn number(text: &str, (min, max): (u32, u32), listed: bool) -> String {
    let digits: String = text.chars().filter(|character| !matches!(character, '_' | ',' | ' ' | '\'' | '%')).collect();
    let thousands = digits.strip_suffix(['k', 'K']).and_then(|number| number.parse::<u32>().ok());
    let found = digits.parse().ok().or_else(|| thousands?.checked_mul(1000)).or_else(|| Some(service(text)?.into()));
    let fits = |number: &u32| (min..=max).contains(number);
    let ends = digits.split_once(['-', '–', ':']).and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    match (found, ends) {
        (Some(number), _) if fits(&number) => format!("write `{number}`"),
        (_, Some((from, to))) if listed && from < to && fits(&from) && fits(&to) => {
            if to - from < MOST_LISTED {
                let each: Vec<String> = (from..=to).map(|number| number.to_string()).collect();
                format!("no range stands here: write `{}`", each.join(", "))
            } else {
                format!("no range stands here: write each number, such as `{from}, {}`", from + 1)
            }
        }
        _ => format!("write a whole number from {min} to {max}"),
    }
}

/// Returns the remedy for a value in place of the group `name`.
pub(super) fn group(name: &str, text: Option<&str>) -> String {
    let takes = |row: &&Key, text: &str| match row.value {
        ValueType::Words(words) => words.contains(&text),
        ValueType::Form(form) => form.contains(&format!("`{text}`")),
        _ => false,
    };
    let off_elsewhere = keys::row(&format!("listen.{name}"));
    let own = KEYS.iter().filter(|row| row.group() == name);
    match text.and_then(|text| {
        off_elsewhere.into_iter().chain(own.clone()).find(|row| takes(row, text)).map(|row| (row, text))
    }) {
        Some((row, text)) => format!("write `{}: {{ {}: {text} }}`", row.group(), row.last()),
        None => format!("write `{name}: {{ {}: ... }}`", keys::below(name).first().unwrap_or(&"key")),
    }
}

/// Returns the port of a service that an operator may write by name.
fn service(name: &str) -> Option<u16> {
    let ports = [("http", 80), ("https", 443), ("domain", 53), ("dns", 53), ("http-alt", 8080)];
    ports.iter().find(|(known, _)| *known == name).map(|(_, port)| *port)
}

/// Returns the remedy for a text in a list that should name a file. None if the text does not look like a name.
pub(super) fn name_for_file(text: &str) -> Option<String> {
    let bare = without_scheme(text);
    let name = bare.trim_start_matches(['=', '*']).trim_start_matches('.');
    let is_name = name.contains('.') && HostName::parse(name).is_ok();
    is_name.then(|| {
        format!("`{bare}` looks like a name: write it into a file, one name a line, and name the file here, such as `domains.txt`")
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Removes a scheme and a path.
fn without_scheme(text: &str) -> &str {
    match text.split_once("://") {
        Some((_, rest)) => rest.split('/').next().unwrap_or(rest),
        None => text.strip_suffix('/').unwrap_or(text),
    }
}

/// Returns the remedy for an IPv6 address in brackets, which YAML reads as a list. Empty if the value is something else.
pub(super) fn bracketed(node: &Node) -> String {
    let NodeValue::List(items) = &node.value else { return String::new() };
    match items.as_slice() {
        [Node { value: NodeValue::Scalar(text), .. }] if text.parse::<IpAddr>().is_ok() => {
            format!("write `{text}`: brackets are for an address with a port")
        }
        _ => String::new(),
    }
}
