//! Remedies for common slips in values. Each function takes the text of a value and returns what to write instead.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ipnet::IpNet;

use crate::keys::{self, KEYS, Key, ValueType};
use crate::names::{Host, HostName};
use crate::units::{parse_bytes, parse_duration, parse_rate};

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
    (bare != text && !bare.is_empty()).then(|| format!("write `{bare}`, without the `{}`", &text[bare.len()..]))
}

/// Returns true if a shell or a template would replace a part of `text`.
pub(super) fn is_variable(text: &str) -> bool {
    let named = text.strip_prefix('$').and_then(|rest| rest.chars().next());
    text.contains("${") || text.contains("{{") || named.is_some_and(|first| first.is_ascii_alphabetic() || first == '(')
}

/// Returns the remedy for a text that is no `ADDRESS:PORT`. `example` is a right one.
pub(super) fn socket(text: &str, example: SocketAddr) -> String {
    let with_port = |port: &str| match port.parse() {
        Ok(port) if port != 0 => format!("write `{}`", SocketAddr::new(example.ip(), port)),
        _ => PORTS.to_owned(),
    };
    let bare = without_scheme(text);
    if bare != text {
        return match bare.parse::<SocketAddr>() {
            Ok(socket) => format!("write `{socket}`: no scheme, no path"),
            Err(_) => format!("write an address and a port, such as `{example}`: no scheme, no path"),
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
            format!(
                "write the port as a number: `{}`",
                SocketAddr::new(address, service(port).unwrap_or(example.port()))
            )
        }
        Ok(Host::Name(name)) if name.as_str() == "localhost" && port.parse::<u16>().is_ok() => {
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
        Some(_) => format!("no scheme: write the address alone, such as `{}`", bare_or(text, "9.9.9.9")),
        None if text.contains('/') => {
            "no file is read here: write the addresses after `nameserver` in it, such as `9.9.9.9`".to_owned()
        }
        None => match text.rsplit_once(':') {
            Some((host, _)) if host.parse::<IpAddr>().is_ok() => PORTS.to_owned(),
            _ => "write an address, such as `9.9.9.9`: a name would need a resolver itself".to_owned(),
        },
    }
}

fn bare_or<'t>(text: &'t str, other: &'t str) -> &'t str {
    let bare = without_scheme(text);
    if bare.parse::<IpAddr>().is_ok() || bare.parse::<SocketAddr>().is_ok() { bare } else { other }
}

/// Returns the remedy for a text that is no IP address.
pub(super) fn address(text: &str) -> String {
    let (host, rest) = text.split_once('/').unwrap_or((text, ""));
    if let Ok(socket) = host.parse::<SocketAddr>() {
        return format!("write `{}`: no port stands here", socket.ip());
    }
    if !rest.is_empty() && host.parse::<IpAddr>().is_ok() {
        return format!("write `{host}`: one address, not a range");
    }
    let octets: Vec<Option<u8>> = text.split('.').map(|octet| octet.parse().ok()).collect();
    match *octets.as_slice() {
        [Some(a), Some(b), Some(c), Some(d)] => format!("write `{}`, without leading zeros", Ipv4Addr::new(a, b, c, d)),
        [_, _, _, _] if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
            "each number of an address is from 0 to 255".to_owned()
        }
        _ => "write an address such as `198.51.100.12`: names are not accepted here".to_owned(),
    }
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
            format!("write `{host}:{written}`{scheme}")
        }
        (Ok(_), Some(_)) => PORTS.to_owned(),
        (Ok(Host::Address(IpAddr::V6(address))), None) => format!("add the port: \"[{address}]:{port}\"{scheme}"),
        (Ok(_), None) => format!("add the port: `{host}:{port}`{scheme}"),
        (Err(_), _) => format!("write a name or an address, a colon and a port, such as `ground.example:{port}`"),
    }
}

/// Returns the remedy for a text that is no host name.
pub(super) fn host(text: &str) -> String {
    let bare = without_scheme(text);
    let bare = bare.strip_prefix("*.").unwrap_or(bare);
    let bare = match bare.rsplit_once(':') {
        Some((host, port)) if is_digits(port) => host,
        _ => bare,
    };
    match Host::parse(bare) {
        Ok(_) if bare != text => format!("write `{bare}`: no scheme, port, path or wildcard"),
        _ => "no scheme, port, path or wildcard".to_owned(),
    }
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

/// Returns the remedy for a text that is no whole number from `min` to `max`.
pub(super) fn number(text: &str, (min, max): (u32, u32)) -> String {
    let digits: String = text.chars().filter(|character| !matches!(character, '_' | ',' | ' ' | '\'')).collect();
    let thousands = digits.strip_suffix(['k', 'K']).and_then(|number| number.parse::<u32>().ok());
    let found = digits.parse().ok().or_else(|| thousands?.checked_mul(1000)).or_else(|| Some(service(text)?.into()));
    match found {
        Some(number) if (min..=max).contains(&number) => format!("write `{number}`"),
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
    let name = text.trim_start_matches(['=', '*']).trim_start_matches('.');
    let is_name = name.contains('.') && HostName::parse(name).is_ok();
    is_name.then(|| {
        format!("`{text}` looks like a name: write it into a file, one name a line, and name the file here, such as `[domains.txt]`")
    })
}

/// Returns what to write for a rate with the unit of another program: `20Mbps`, `20 Mbit/s`, `2MB/s`.
pub(super) fn rate(text: &str) -> Option<String> {
    let (number, unit) = number_and_unit(text);
    if unit.is_empty() {
        return missing_unit(&number, "mbit", "kbit");
    }
    let lower = unit.to_ascii_lowercase();
    let a_second = ["/sec", "/s", "ps"].iter().find_map(|end| lower.strip_suffix(end)).unwrap_or(&lower);
    let in_bytes = unit.contains('B') || lower.contains("byte");
    let prefix = match a_second.trim_end_matches('s') {
        "k" | "kb" | "kbit" | "kbyte" | "kilobit" => "k",
        "m" | "mb" | "mbit" | "mbyte" | "megabit" => "m",
        "g" | "gb" | "gbit" | "gbyte" | "gigabit" => "g",
        "b" | "bit" => "",
        _ => return None,
    };
    let number = if in_bytes { number.parse::<u64>().ok()?.checked_mul(8)?.to_string() } else { number };
    write(&format!("{number}{prefix}bit"), |text| parse_rate(text).is_ok())
}

/// Returns what to write for a time with the unit of another program: `600msec`, `5 minutes`.
pub(super) fn time(text: &str) -> Option<String> {
    let (number, unit) = number_and_unit(text);
    let unit = match unit.to_lowercase().as_str() {
        "" => return missing_unit(&number, "ms", "s"),
        "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => "ms",
        "sec" | "secs" | "second" | "seconds" => "s",
        "min" | "mins" | "minute" | "minutes" => "m",
        "hr" | "hrs" | "hour" | "hours" => "h",
        "day" | "days" => "d",
        "usec" | "µs" | "μs" => "us",
        _ => return decimal_point(text, |text| parse_duration(text).is_ok()),
    };
    write(&format!("{number}{unit}"), |text| parse_duration(text).is_ok())
}

/// Returns what to write for a size with the unit of another program: `2G`, `512 megabytes`.
pub(super) fn size(text: &str) -> Option<String> {
    let (number, unit) = number_and_unit(text);
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" => return missing_unit(&number, "mib", "gib"),
        "k" | "kbyte" | "kbytes" => "kib",
        "m" | "mbyte" | "mbytes" | "megabytes" => "mib",
        "g" | "gbyte" | "gbytes" | "gigabytes" => "gib",
        "t" | "tbyte" | "tbytes" | "terabytes" => "tib",
        "byte" | "bytes" => "b",
        _ => return decimal_point(text, |text| parse_bytes(text).is_ok()),
    };
    write(&format!("{number}{unit}"), |text| parse_bytes(text).is_ok())
}

/// Splits `20 Mbit/s` into the number, with a decimal point, and the unit.
fn number_and_unit(text: &str) -> (String, String) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number.replace(',', "."), unit.trim().to_owned())
}

fn missing_unit(number: &str, usual: &str, other: &str) -> Option<String> {
    let readable = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    readable.then(|| format!("add the unit: `{number}{usual}` or `{number}{other}`"))
}

fn decimal_point(text: &str, reads: impl Fn(&str) -> bool) -> Option<String> {
    if text.contains(',') { write(&text.replace(',', "."), reads) } else { None }
}

fn write(text: &str, reads: impl Fn(&str) -> bool) -> Option<String> {
    reads(text).then(|| format!("write `{text}`"))
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
