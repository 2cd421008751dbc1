//! Lookups over TLS, QUIC and HTTPS, `dns.encrypted`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use super::{Role, Settings, Termination};
use crate::names::{Host, HostName};
use crate::sockets::{Family, Sockets, overlap};

/// A transport of encrypted lookups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupTransport {
    /// DNS over TLS (RFC 7858).
    Tls,
    /// DNS over QUIC (RFC 9250).
    Quic,
    /// DNS over HTTPS (RFC 8484).
    Https,
}

impl LookupTransport {
    /// Every transport, the most wanted first: a browser alone needs the overhead of HTTPS.
    pub(crate) const ALL: [Self; 3] = [Self::Tls, Self::Quic, Self::Https];

    /// Returns the port. That of HTTPS is none of `listen.tls`: CoreDNS sees the client's own address there.
    #[must_use]
    pub fn port(self) -> u16 {
        match self {
            Self::Tls | Self::Quic => 853,
            Self::Https => 8443,
        }
    }

    /// Returns true if packets of UDP carry it.
    #[must_use]
    pub fn is_udp(self) -> bool {
        self == Self::Quic
    }

    /// Returns the name in a Corefile.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tls => "tls",
            Self::Quic => "quic",
            Self::Https => "https",
        }
    }

    /// Returns the protocol by which TLS chooses it (ALPN).
    #[must_use]
    pub fn alpn(self) -> &'static str {
        match self {
            Self::Tls => "dot",
            Self::Quic => "doq",
            Self::Https => "h2",
        }
    }

    /// Returns the sockets beside those of plain lookups.
    pub fn sockets(self, plain: &Sockets) -> impl Iterator<Item = SocketAddr> + '_ {
        plain.iter().map(move |socket| SocketAddr::new(socket.ip(), self.port()))
    }
}

/// The encrypted lookups of a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptedLookups<'s> {
    /// The transports, at least one.
    pub transports: Vec<LookupTransport>,
    /// The certificates and the names of the proxy on each, at least one.
    pub certificates: Vec<(&'s Termination, Vec<&'s HostName>)>,
    /// The addresses to which the names lead, at least one.
    pub addresses: Vec<IpAddr>,
}

/// The reason why a box has no encrypted lookups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotEncrypted {
    /// The operator's wish.
    Off,
    /// TLS passes through both ends of a pair.
    Pair,
    /// No client asks.
    NoDns,
    /// A client finds plain DNS on port 53 alone.
    OtherPort,
    /// No name has a certificate.
    NoName,
    /// The names lead to other addresses than those of the lookups.
    OtherAddresses,
    /// Every port is that of another listener.
    PortsTaken,
}

impl fmt::Display for NotEncrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "`dns.encrypted` is off",
            Self::Pair => "TLS passes through a pair",
            Self::NoDns => "`listen.dns` is off",
            Self::OtherPort => "`listen.dns` is not on port 53",
            Self::NoName => "no name under `proxy.secure_names` has a certificate",
            Self::OtherAddresses => "`listen.dns` has no address of `proxy.addresses`",
            Self::PortsTaken => "their ports are in use",
        })
    }
}

impl Settings {
    /// Returns the encrypted lookups, or the reason why there are none.
    pub fn encrypted_lookups(&self) -> Result<EncryptedLookups<'_>, NotEncrypted> {
        let usable = self.dns.encrypted.as_ref().ok_or(NotEncrypted::Off)?;
        if self.role != Role::Edge {
            return Err(NotEncrypted::Pair);
        }
        let plain = self.listen.dns.as_ref().ok_or(NotEncrypted::NoDns)?;
        if plain.port() != 53 {
            return Err(NotEncrypted::OtherPort);
        }
        let certificates: Vec<_> = self.terminate.iter().filter_map(|entry| self.with_own_names(entry)).collect();
        if certificates.is_empty() {
            return Err(NotEncrypted::NoName);
        }
        let served = |address: &&IpAddr| {
            plain.iter().any(|socket| socket.ip() == **address)
                || plain.has_wildcard() && plain.serves(Family::of(**address))
        };
        let addresses: Vec<IpAddr> = self.proxy.addresses.iter().filter(served).copied().collect();
        if addresses.is_empty() {
            return Err(NotEncrypted::OtherAddresses);
        }
        let own = |socket: SocketAddr| self.other_sockets().any(|other| overlap(other, socket));
        let is_free = |transport: &LookupTransport| !transport.sockets(plain).any(own);
        let transports: Vec<LookupTransport> = usable.iter().copied().filter(is_free).collect();
        if transports.is_empty() {
            return Err(NotEncrypted::PortsTaken);
        }
        Ok(EncryptedLookups { transports, certificates, addresses })
    }

    /// Returns the entry with those of its names that are the proxy's own.
    fn with_own_names<'s>(&'s self, entry: &'s Termination) -> Option<(&'s Termination, Vec<&'s HostName>)> {
        let own = entry.names.iter().filter(|name| self.proxy.secure_names.contains(name));
        let names: Vec<&HostName> = own
            .filter_map(|host| match host {
                Host::Name(name) => Some(name),
                Host::Address(_) => None,
            })
            .collect();
        (!names.is_empty()).then_some((entry, names))
    }

    /// Returns the sockets that the file gives to something else.
    fn other_sockets(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        let challenges = self.acme.as_ref().and_then(|acme| acme.listen);
        self.listen.sockets().map(|(_, socket)| socket).chain(challenges)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::load_text;

    #[test]
    fn lookups_are_encrypted_where_clients_can_use_it_and_nothing_else_has_the_ports() {
        let files = Path::new("../longhaul/tests/config/files/longhaul.yaml");
        let load = |dns: &str, listen: &str, names: &str| {
            let text = format!(
                "link: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\nupstream: {{ resolvers: [192.0.2.53] }}\n\
                 proxy: {{ addresses: [198.51.100.12], secure_names: [{names}] }}\nlisten: {{ {listen} }}\n\
                 dns: {{ {dns} }}\ntls: {{ terminate: [{{ names: [pep.example.net], cert: pep.pem, key: pep.key }}] }}\n"
            );
            load_text(files, text).unwrap().settings
        };
        let all: &[LookupTransport] = &LookupTransport::ALL;
        for (dns, listen, expected) in [
            ("", "", Ok(all)),
            ("encrypted: auto", "", Ok(all)),
            ("encrypted: off", "", Err(NotEncrypted::Off)),
            ("", "dns: off", Err(NotEncrypted::NoDns)),
            ("", "dns: \"127.0.0.1:1053\"", Err(NotEncrypted::OtherPort)),
            ("", "dns: \"192.0.2.1:53\"", Err(NotEncrypted::OtherAddresses)),
            ("", "dns: [\"192.0.2.1:53\", \"198.51.100.12:53\"]", Ok(all)),
            ("", "metrics: \"0.0.0.0:8443\"", Ok(&all[..2])),
            ("", "status: \"0.0.0.0:853\"", Ok(&all[2..])),
            ("", "metrics: \"0.0.0.0:8443\", status: \"0.0.0.0:853\"", Err(NotEncrypted::PortsTaken)),
        ] {
            let settings = load(dns, listen, "pep.example.net");
            let found = settings.encrypted_lookups();
            assert_eq!(
                found.as_ref().map(|one| one.transports.as_slice()).map_err(|why| *why),
                expected,
                "{dns} {listen}"
            );
            if let Ok(found) = found {
                assert_eq!(found.addresses, ["198.51.100.12".parse::<IpAddr>().unwrap()]);
                assert_eq!(found.certificates[0].1.len(), 1);
            }
        }
        assert_eq!(load("", "", "").encrypted_lookups(), Err(NotEncrypted::NoName));
    }
}
