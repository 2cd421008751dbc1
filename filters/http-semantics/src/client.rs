//! The client of a connection, identified by its address.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_cut_off_addresses() {
        for (address, client) in [
            ("192.0.2.1:40000", "192.0.2.1"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:db8::1]:40000", "[2001:db8::1]"),
            ("2001:db8::1", "2001:db8::1"),
            ("", ""),
            ("/run/socket", "/run/socket"),
        ] {
            assert_eq!(without_port(address.as_bytes()), client.as_bytes());
        }
    }
}
