//! A host or an address, and the port behind it.

use std::net::IpAddr;

/// Returns the address in `ADDRESS:PORT`. Proxies write the peer of a connection in this form, and each connection has
/// another port. Brackets around an IPv6 address stay. An address without a port stays as it is.
pub fn without_port(address: &[u8]) -> &[u8] {
    let colon = address.iter().rposition(|byte| *byte == b':');
    let is_port = |at: usize| address.get(at + 1..).is_some_and(|port| port.iter().all(u8::is_ascii_digit));
    let host = |at: usize| address.get(..at).unwrap_or(address);
    match colon {
        // A bare IPv6 address has colons and no port.
        Some(at) if is_port(at) && (host(at).ends_with(b"]") || !host(at).contains(&b':')) => host(at),
        _ => address,
    }
}

/// Returns the host of an authority (RFC 3986 section 3.2), as [`without_port`] does.
pub fn host(authority: &str) -> &str {
    authority.get(..without_port(authority.as_bytes()).len()).unwrap_or(authority)
}

/// Returns the address that a host is, if it is one. Brackets and the interface of a link-local address do not matter, and
/// an IPv4 address mapped into IPv6 is the IPv4 address. So two spellings of one address are equal. The text of an
/// [`IpAddr`] is that of RFC 5952.
pub fn address(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.split('%').next()?.parse().ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_cut_off_addresses_and_names() {
        for (authority, expected) in [
            ("192.0.2.1:40000", "192.0.2.1"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:db8::1]:40000", "[2001:db8::1]"),
            ("[2001:db8::1]", "[2001:db8::1]"),
            ("[2001:db8::1]:", "[2001:db8::1]"),
            ("2001:db8::1", "2001:db8::1"),
            ("2001:db8::1:2", "2001:db8::1:2"),
            ("::", "::"),
            ("[::]:80", "[::]"),
            ("www.example.org:80", "www.example.org"),
            ("www.example.org:", "www.example.org"),
            ("www.example.org", "www.example.org"),
            ("www.example.org:http", "www.example.org:http"),
            ("b\u{fc}cher.example:80", "b\u{fc}cher.example"),
            ("", ""),
            ("/run/socket", "/run/socket"),
        ] {
            assert_eq!(without_port(authority.as_bytes()), expected.as_bytes(), "{authority}");
            assert_eq!(host(authority), expected);
        }
    }

    #[test]
    fn every_spelling_of_an_address_has_one_text_form() {
        for (spelling, form) in [
            ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
            ("[2001:db8::0001]", "2001:db8::1"),
            ("2001:db8:0:1:0:0:0:1", "2001:db8:0:1::1"),
            ("fe80::1%eth0", "fe80::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("[::FFFF:c000:201]", "192.0.2.1"),
            ("192.0.2.1", "192.0.2.1"),
        ] {
            assert_eq!(address(spelling).map(|address| address.to_string()).as_deref(), Some(form), "{spelling}");
        }
        for other in ["", "[", "]", "[2001:db8::1", "www.example.org", "192.0.2.1:80", "[2001:db8::1]:80", "1.2.3"] {
            assert_eq!(address(other), None, "{other}");
        }
    }
}
