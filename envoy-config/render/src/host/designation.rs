//! The options by which a DHCP server tells clients of the encrypted lookups (RFC 9463). Longhaul has no DHCP server, so an
//! operator copies them.

use std::fmt::Write as _;
use std::net::IpAddr;

use longhaul_config::{HostName, LookupTransport, Settings};

/// The codes of the options (RFC 9463 section 9).
const DHCP4: u8 = 162;
const DHCP6: u8 = 144;
/// The largest value of an option of DHCP over IPv4.
const MOST_BYTES: usize = u8::MAX as usize;
/// Keys of service parameters (RFC 9460 section 14.3.2, RFC 9461 section 8).
const ALPN: u16 = 1;
const PORT: u16 = 3;
const DOHPATH: u16 = 7;
/// The only path of CoreDNS (RFC 8484 section 4.1).
const PATH: &str = "/dns-query{?dns}";

/// One server: the transports of a port.
struct Server {
    priority: u16,
    port: u16,
    alpn: Vec<&'static str>,
    is_https: bool,
}

/// Returns comments with the options for the DHCP servers dnsmasq and Kea. Empty without encrypted lookups.
#[must_use]
pub fn dhcp_options(settings: &Settings) -> String {
    let Ok(lookups) = settings.encrypted_lookups() else { return String::new() };
    let Some(name) = lookups.certificates.iter().find_map(|(_, names)| names.first()) else { return String::new() };
    let servers = servers(&lookups.transports);
    let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) = lookups.addresses.iter().partition(|address| address.is_ipv4());
    let mut out =
        "\n# Clients hear of encrypted lookups from the DHCP server, too, with these options (RFC 9463).\n".to_owned();
    let mut option = |dnsmasq: &str, space: &str, code: u8, value: &[u8]| {
        let hex: Vec<String> = value.iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = write!(
            out,
            "# dnsmasq:\n#   dhcp-option={dnsmasq},{}\n# Kea, in `option-data` of {space}:\n#   {{ \"code\": {code}, \"space\": \"{}\", \
             \"csv-format\": false, \"data\": \"{}\" }}\n",
            hex.join(":"),
            space.to_lowercase(),
            hex.concat()
        );
    };
    if !v4.is_empty() {
        option(&DHCP4.to_string(), "Dhcp4", DHCP4, &dhcp4(&servers, name, &v4));
    }
    // dnsmasq sends an option of DHCPv6 once, and a value has one server.
    if let Some(first) = servers.first().filter(|_| !v6.is_empty()) {
        option(&format!("option6:{DHCP6}"), "Dhcp6", DHCP6, &dhcp6(first, name, &v6));
    }
    out
}

/// Returns the servers, the most wanted first.
fn servers(transports: &[LookupTransport]) -> Vec<Server> {
    let mut servers: Vec<Server> = Vec::new();
    for (priority, transport) in (1..).zip(transports) {
        match servers.iter_mut().find(|server| server.port == transport.port()) {
            Some(server) => server.alpn.push(transport.alpn()),
            None => servers.push(Server {
                priority,
                port: transport.port(),
                alpn: vec![transport.alpn()],
                is_https: *transport == LookupTransport::Https,
            }),
        }
    }
    servers
}

/// Returns the value of the option for IPv4: as many servers as fit (RFC 9463 section 5.1).
fn dhcp4(servers: &[Server], name: &HostName, addresses: &[IpAddr]) -> Vec<u8> {
    let mut value = Vec::new();
    for server in servers {
        let name = wire_name(name);
        let mut one = server.priority.to_be_bytes().to_vec();
        one.extend(counted::<1>(&name));
        one.extend(counted::<1>(&octets(addresses)));
        one.extend(server.parameters());
        if value.len() + 2 + one.len() <= MOST_BYTES {
            value.extend(counted::<2>(&one));
        }
    }
    value
}

/// Returns the value of the option for IPv6, for one server (RFC 9463 section 4.1).
fn dhcp6(server: &Server, name: &HostName, addresses: &[IpAddr]) -> Vec<u8> {
    let mut value = server.priority.to_be_bytes().to_vec();
    value.extend(counted::<2>(&wire_name(name)));
    value.extend(counted::<2>(&octets(addresses)));
    value.extend(server.parameters());
    value
}

impl Server {
    /// Returns the service parameters in ascending order (RFC 9460 section 2.2).
    fn parameters(&self) -> Vec<u8> {
        let alpn: Vec<u8> = self.alpn.iter().flat_map(|protocol| counted::<1>(protocol.as_bytes())).collect();
        let path = self.is_https.then(|| (DOHPATH, PATH.as_bytes().to_vec()));
        let all = [(ALPN, alpn), (PORT, self.port.to_be_bytes().to_vec())].into_iter().chain(path);
        all.flat_map(|(key, value)| key.to_be_bytes().into_iter().chain(counted::<2>(&value))).collect()
    }
}

/// Returns a name as DNS writes it (RFC 1035 section 3.1).
fn wire_name(name: &HostName) -> Vec<u8> {
    let text = name.to_string();
    text.split('.').flat_map(|label| counted::<1>(label.as_bytes())).chain([0]).collect()
}

fn octets(addresses: &[IpAddr]) -> Vec<u8> {
    let of = |address: &IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    addresses.iter().flat_map(of).collect()
}

/// Returns the bytes behind their number, a field of `WIDTH` bytes. No value here is longer than the field can say.
fn counted<const WIDTH: usize>(bytes: &[u8]) -> Vec<u8> {
    let count = bytes.len().to_be_bytes();
    let field = count.iter().skip(count.len() - WIDTH);
    field.chain(bytes).copied().collect()
}

#[cfg(test)]
mod tests {
    use longhaul_config::LookupTransport::{Https, Quic, Tls};

    use super::*;

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn an_option_of_dhcpv4_has_the_bytes_of_the_rfc() {
        let name = HostName::parse("pep.example.net").unwrap();
        let value = dhcp4(&servers(&[Tls, Quic, Https]), &name, &addresses(&["198.51.100.12"]));
        let expected: Vec<u8> = [
            &[0, 43, 0, 1][..], // DNR Instance Data Length, Service Priority
            &[17],              // ADN Length
            b"\x03pep\x07example\x03net\x00",
            &[4, 198, 51, 100, 12], // Addr Length, IPv4 Address
            &[0, 1, 0, 8],          // alpn
            b"\x03dot\x03doq",
            &[0, 3, 0, 2, 3, 85], // port 853
            &[0, 58, 0, 3, 17],
            b"\x03pep\x07example\x03net\x00",
            &[4, 198, 51, 100, 12, 0, 1, 0, 3],
            b"\x02h2",
            &[0, 3, 0, 2, 32, 251, 0, 7, 0, 16], // port 8443, dohpath
            b"/dns-query{?dns}",
        ]
        .concat();
        assert_eq!(value, expected);
    }

    #[test]
    fn an_option_of_dhcpv6_has_the_bytes_of_the_rfc() {
        let name = HostName::parse("pep.example.net").unwrap();
        let value = dhcp6(&servers(&[Https])[0], &name, &addresses(&["2001:db8::1", "2001:db8::2"]));
        let expected: Vec<u8> = [
            &[0, 1, 0, 17][..], // Service Priority, ADN Length
            b"\x03pep\x07example\x03net\x00",
            &[0, 32], // Addr Length
            &[32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            &[32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2],
            &[0, 1, 0, 3],
            b"\x02h2",
            &[0, 3, 0, 2, 32, 251, 0, 7, 0, 16],
            b"/dns-query{?dns}",
        ]
        .concat();
        assert_eq!(value, expected);
    }

    #[test]
    fn an_option_of_dhcpv4_has_no_more_servers_than_fit() {
        let name = HostName::parse(&format!("{0}.{0}.example.net", "a".repeat(50))).unwrap();
        let all = dhcp4(&servers(&[Tls, Https]), &name, &addresses(&["198.51.100.12"]));
        assert_eq!(all, dhcp4(&servers(&[Tls]), &name, &addresses(&["198.51.100.12"])));
    }
}
