//! Decides which host names a moved URL can hold.
//!
//! A host becomes the first segment of a path. On the way back it becomes a `Host` field and a name to resolve. So only
//! hosts that read the same in all three places move: dotted names of letters, digits, `-` and `_`, and literal
//! addresses.

use http_semantics::addresses;

use crate::outcome::Reason;

/// Bytes of the longest name in DNS, in its dotted form.
const NAME_BYTES: usize = 253;
/// Bytes of the longest label in DNS.
const LABEL_BYTES: usize = 63;

/// The result of scanning a host without the URL parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scan {
    /// A movable name, exactly as the WHATWG parser would write it.
    Canonical,
    /// A movable name, except for capital letters.
    Capitals,
    /// A host that needs the parser (address literals, non-ASCII, percent signs, punycode) or cannot move at all.
    Unclear,
}

/// Scans a host as written in a URL. Punycode is unclear because the parser rejects some of it. A last label that
/// begins with a digit is unclear because the host may be an IPv4 address.
pub(crate) fn scan(host: &str) -> Scan {
    let bytes = host.as_bytes();
    if bytes.len() > NAME_BYTES {
        return Scan::Unclear;
    }
    let mut capitals = false;
    let mut dots = 0_usize;
    let mut label_start = true;
    let mut last_label_first = 0_u8;
    let mut label_len = 0_usize;
    let mut ends_in_hyphen = false;
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => {}
            b'A'..=b'Z' => capitals = true,
            b'.' if !label_start && !ends_in_hyphen => {
                dots += 1;
                label_start = true;
                label_len = 0;
                continue;
            }
            _ => return Scan::Unclear,
        }
        ends_in_hyphen = byte == b'-';
        if label_start {
            // RFC 1123, 2.1: a label begins and ends with a letter or digit.
            if ends_in_hyphen {
                return Scan::Unclear;
            }
            last_label_first = byte;
            label_start = false;
            let prefix = bytes.get(at..at + 4).unwrap_or_default();
            if prefix.eq_ignore_ascii_case(b"xn--") {
                return Scan::Unclear;
            }
        }
        label_len += 1;
        if label_len > LABEL_BYTES {
            return Scan::Unclear;
        }
    }
    if dots == 0 || label_start || ends_in_hyphen || !last_label_first.is_ascii_alphabetic() {
        return Scan::Unclear;
    }
    if capitals { Scan::Capitals } else { Scan::Canonical }
}

/// Checks that a moved URL can hold a host that the parser wrote.
pub(crate) fn movable(host: &url::Host<&str>) -> Result<(), Reason> {
    match host {
        url::Host::Domain(name) => {
            if is_name(name) && name.contains('.') {
                Ok(())
            } else {
                Err(Reason::HostForm)
            }
        }
        url::Host::Ipv4(address) if addresses::is_refused((*address).into()) => Err(Reason::PrivateAddress),
        url::Host::Ipv6(address) if addresses::is_refused((*address).into()) => Err(Reason::PrivateAddress),
        url::Host::Ipv4(_) | url::Host::Ipv6(_) => Ok(()),
    }
}

/// Returns true if the labels and the length of a name are valid in DNS and for a host (RFC 1035, 2.3.4; RFC 1123,
/// 2.1). It also allows underscores, which names in use have.
fn is_name(name: &str) -> bool {
    name.len() <= NAME_BYTES
        && name.split('.').all(|label| {
            (1..=LABEL_BYTES).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

/// Returns true if a host from a client, in any spelling, can be a name or an address.
pub(crate) fn can_exist(host: &str) -> bool {
    is_name(host.strip_suffix('.').unwrap_or(host)) || (host.starts_with('[') && url::Host::parse(host).is_ok())
}

/// Returns true if a host is an IPv6 address of the local machine. The guard decides about IPv4, because it knows the
/// exceptions.
pub(crate) fn is_this_machine(host: &str) -> bool {
    matches!(host, "[::1]" | "[::]")
}

/// Returns true if a host from a path has the form that [`forward`](crate::Mapper::forward) writes. Private addresses
/// may have that form: the guard behind the resolver decides about them, because it knows the exceptions.
pub(crate) fn is_canonical(host: &str) -> bool {
    match scan(host) {
        Scan::Canonical => true,
        Scan::Capitals => false,
        Scan::Unclear => url::Host::parse(host).is_ok_and(|parsed| {
            let borrowed = match &parsed {
                url::Host::Domain(name) => url::Host::Domain(name.as_str()),
                url::Host::Ipv4(address) => url::Host::Ipv4(*address),
                url::Host::Ipv6(address) => url::Host::Ipv6(*address),
            };
            parsed.to_string() == host && movable(&borrowed) != Err(Reason::HostForm)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotted_names_of_plain_letters_need_no_parser() {
        for host in ["i.cnn.net", "a-b.example", "x_y.example.org", "9.example"] {
            assert_eq!(scan(host), Scan::Canonical, "{host}");
        }
        assert_eq!(scan("I.Cnn.Net"), Scan::Capitals);
    }

    #[test]
    fn a_label_neither_begins_nor_ends_with_a_hyphen_and_is_never_empty() {
        for host in ["-a.example", "a-.example", "a.-example", "a.example-", "a..example", ".a.example"] {
            assert!(!is_canonical(host) && !can_exist(host), "{host}");
        }
        for host in ["a-b.example", "a--b.example", "x_y.example"] {
            assert!(is_canonical(host) && can_exist(host), "{host}");
        }
        for host in ["printer", "Printer.Example.", "[2001:db8::1]", "192.0.2.1"] {
            assert!(can_exist(host), "{host}");
        }
        for host in ["", "a b.example", "[2001:db8::1", "a%2e.example", "u@a.example"] {
            assert!(!can_exist(host), "{host}");
        }
    }

    #[test]
    fn everything_else_is_left_to_the_parser() {
        for host in [
            "",
            ".",
            "a",
            "a.",
            ".a",
            "a..b",
            "192.0.2.1",
            "1.0x7f",
            "xn--a.example",
            "a.XN--b",
            "b\u{fc}cher.example",
            "a b.c",
            "[::1]",
            "a%2eb.c",
        ] {
            assert_eq!(scan(host), Scan::Unclear, "{host}");
        }
        assert_eq!(scan(&format!("{}.example", "a".repeat(64))), Scan::Unclear);
        assert_eq!(scan(&"a.".repeat(127)), Scan::Unclear);
    }

    #[test]
    fn a_scanned_name_is_what_the_parser_writes() {
        for host in ["i.cnn.net", "a-b.example", "a--b.example", "x_y.example.org"] {
            assert_eq!(url::Host::parse(host).unwrap().to_string(), host);
            assert!(is_canonical(host));
        }
    }

    #[test]
    fn hosts_are_accepted_back_only_as_written_by_us() {
        for host in ["192.0.2.1", "[2001:db8::1]", "xn--bcher-kva.example", "10.0.0.1"] {
            assert!(is_canonical(host), "{host}");
        }
        for host in [
            "I.cnn.net",
            "localhost",
            "a.example.",
            "192.0.2.01",
            "0x7f.1",
            "[2001:DB8::1]",
            "[::1",
            "a..b",
            "..",
            "b\u{fc}cher.example",
            "a%2eb",
            "xn--a.example",
            "a,b.example",
        ] {
            assert!(!is_canonical(host), "{host}");
        }
    }

    #[test]
    fn an_address_that_the_guard_refuses_stays() {
        for host in [
            "198.18.0.5",
            "192.0.0.10",
            "192.88.99.1",
            "[64:ff9b:1::1]",
            "[2002:c000:204::1]",
            "[fec0::1]",
            "[5f00::1]",
            "[::10.0.0.1]",
        ] {
            let url = url::Url::parse(&format!("http://{host}/")).unwrap();
            assert_eq!(movable(&url.host().unwrap()), Err(Reason::PrivateAddress), "{host}");
        }
    }

    #[test]
    fn private_addresses_never_move_and_public_ones_may() {
        for (host, outcome) in [
            ("10.1.2.3", Err(Reason::PrivateAddress)),
            ("127.0.0.1", Err(Reason::PrivateAddress)),
            ("169.254.169.254", Err(Reason::PrivateAddress)),
            ("100.64.0.1", Err(Reason::PrivateAddress)),
            ("0.0.0.0", Err(Reason::PrivateAddress)),
            ("255.255.255.255", Err(Reason::PrivateAddress)),
            ("[::ffff:10.0.0.1]", Err(Reason::PrivateAddress)),
            ("[::1]", Err(Reason::PrivateAddress)),
            ("[fd00::1]", Err(Reason::PrivateAddress)),
            ("[fe80::1]", Err(Reason::PrivateAddress)),
            ("[::ffff:8.8.8.8]", Err(Reason::PrivateAddress)),
            ("198.51.100.7", Ok(())),
            ("[2001:db8::1]", Ok(())),
            ("100.128.0.1", Ok(())),
        ] {
            let url = url::Url::parse(&format!("http://{host}/")).unwrap();
            assert_eq!(movable(&url.host().unwrap()), outcome, "{host}");
        }
    }
}
