//! Host names, and forms that contain one: a name or an address, with or without a port.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A DNS host name in lower case, as A-labels, without a trailing dot. Labels have at most 63 bytes and the name at
/// most 253 (RFC 1035).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

/// A name or an address literal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A name.
    Name(HostName),
    /// An address.
    Address(IpAddr),
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// The host.
    pub host: Host,
    /// The port, never 0.
    pub port: u16,
}

/// The reason why a text is not a host name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameError {
    /// The text is empty.
    Empty,
    /// More than 253 bytes, or a label of more than 63.
    TooLong,
    /// A character that is not allowed in names, or an empty label.
    Malformed,
    /// Digits and dots: an address or a part of one.
    Address,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "nothing",
            Self::TooLong => "more than 63 bytes in a label or 253 in all",
            Self::Malformed => "a character or an empty label that host names do not have",
            Self::Address => "an address, not a name",
        })
    }
}

impl HostName {
    /// Parses a name as a person writes it: in any case, in Unicode, with a trailing dot.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.parse::<Ipv4Addr>().is_ok() || text.parse::<Ipv6Addr>().is_ok() {
            return Err(NameError::Address);
        }
        let ascii =
            idna::domain_to_ascii_cow(text.as_bytes(), idna::AsciiDenyList::URL).map_err(|_| NameError::Malformed)?;
        let labels_fit = ascii.split('.').all(|label| label.len() <= 63);
        if ascii.len() > 253 || !labels_fit {
            return Err(NameError::TooLong);
        }
        if !ascii.split('.').all(label_is_well_formed) {
            return Err(NameError::Malformed);
        }
        // The URL standard, and so every browser, reads a name whose last label is a number as an IPv4 address.
        if ascii.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit())) {
            return Err(NameError::Address);
        }
        Ok(Self(ascii.into_owned()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Accepts letters, digits, hyphens and underscores in any place. Names with a hyphen at an end are in use and resolve.
fn label_is_well_formed(label: &str) -> bool {
    !label.is_empty() && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'))
}

impl Host {
    /// Returns true for a name.
    pub fn is_name(&self) -> bool {
        matches!(self, Self::Name(_))
    }

    /// Parses a name or an address. Brackets around an address are optional.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        match bare.parse::<IpAddr>() {
            Ok(address) => Ok(Self::Address(address)),
            Err(_) => HostName::parse(text).map(Self::Name),
        }
    }

    /// Returns it without the brackets around an IPv6 address, as sockets, resolvers and certificates have it.
    pub fn bare(&self) -> String {
        match self {
            Self::Name(name) => name.to_string(),
            Self::Address(address) => address.to_string(),
        }
    }

    /// Returns the authority of a URL whose scheme has `default_port`.
    pub fn authority(&self, port: u16, default_port: u16) -> String {
        if port == default_port { self.to_string() } else { format!("{self}:{port}") }
    }
}

impl HostPort {
    /// Parses `HOST:PORT`. Returns None if either is missing or malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = split_port(text)?;
        Some(Self { host: Host::parse(host).ok()?, port: port? })
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Splits `host:port`, `[v6]:port` or `host`. Returns None if the port is not a number from 1 to 65535.
pub(crate) fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let host_end =
        if text.starts_with('[') { text.find(']').map(|at| at + 1)? } else { text.rfind(':').unwrap_or(text.len()) };
    let (host, rest) = text.split_at(host_end);
    // In an IPv6 address without brackets every colon is part of the address.
    if !host.starts_with('[') && host.contains(':') {
        return Some((text, None));
    }
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Some((host, None)),
        None => None,
        Some(port) => {
            let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
            let port: u16 = if digits { port.parse().ok()? } else { return None };
            (port != 0).then_some((host, Some(port)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_lower_case_a_labels_without_the_final_dot() {
        assert_eq!(HostName::parse("WWW.Example.ORG.").unwrap().as_str(), "www.example.org");
        assert_eq!(HostName::parse("bücher.example").unwrap().as_str(), "xn--bcher-kva.example");
        assert_eq!(HostName::parse("_dmarc.example.org").unwrap().as_str(), "_dmarc.example.org");
        assert_eq!(HostName::parse("-a-.example.org").unwrap().as_str(), "-a-.example.org");
    }

    #[test]
    fn values_that_are_no_names_are_refused() {
        let long = "a".repeat(64);
        let table = [
            ("", NameError::Empty),
            (".", NameError::Empty),
            ("a..b", NameError::Malformed),
            ("a b.example", NameError::Malformed),
            ("http://example.org", NameError::Malformed),
            ("*.example.org", NameError::Malformed),
            ("192.0.2.1", NameError::Address),
            ("2001:db8::1", NameError::Address),
            ("192.0.2.256", NameError::Malformed),
        ];
        for (text, expected) in table {
            let got = HostName::parse(text);
            assert!(got.is_err(), "{text}: {got:?}");
            if expected != NameError::Malformed {
                assert_eq!(got, Err(expected), "{text}");
            }
        }
        assert!(HostName::parse(&format!("{long}.example")).is_err());
    }

    #[test]
    fn ports_are_split_off_names_and_both_kinds_of_address() {
        assert_eq!(split_port("a.example"), Some(("a.example", None)));
        assert_eq!(split_port("a.example:53"), Some(("a.example", Some(53))));
        assert_eq!(split_port("[2001:db8::1]:53"), Some(("[2001:db8::1]", Some(53))));
        assert_eq!(split_port("[2001:db8::1]"), Some(("[2001:db8::1]", None)));
        assert_eq!(split_port("2001:db8::1"), Some(("2001:db8::1", None)));
        for bad in ["a:0", "a:65536", "a:", "a:+5", "[::1", "[::1]x", "a:b"] {
            assert_eq!(split_port(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_authority_names_the_port_only_where_it_is_not_the_default() {
        let v6 = Host::parse("2001:db8::1").unwrap();
        assert_eq!(v6.authority(80, 80), "[2001:db8::1]");
        assert_eq!(v6.authority(8080, 80), "[2001:db8::1]:8080");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in ".*") {
            let _ = (HostName::parse(&text), Host::parse(&text), split_port(&text));
        }

        #[test]
        fn a_name_reads_back_as_itself(text in "[a-z0-9.-]{1,80}") {
            if let Ok(name) = HostName::parse(&text) {
                prop_assert_eq!(HostName::parse(name.as_str()), Ok(name));
            }
        }
    }
}
