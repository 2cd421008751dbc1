//! Chooses the connections that cross the link.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use longhaul_config::{Host, Intercept, Role, Settings, Sockets};

use super::kernel::ConnectionId;

/// The ports that clients request, which the socket of a connection keeps under `listen.intercept: tproxy`.
const WEB_PORTS: [u16; 2] = [80, 443];

/// The connections that cross the link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Watched {
    /// Those that come in at these ports.
    From(BTreeSet<u16>),
    /// Those that this box opens to one of these ports, at the address beside it if that is known.
    To(Vec<(Option<IpAddr>, u16)>),
}

impl Watched {
    /// Returns the choice for `settings`: clients' connections of a single box, or those of a pair's ends.
    pub(crate) fn of(settings: &Settings) -> Self {
        match &settings.role {
            Role::Edge => Self::at_listeners(settings),
            Role::Ground(ground) => Self::From(BTreeSet::from([ground.listen.port()])),
            Role::Remote(remote) => Self::To(
                remote
                    .grounds
                    .iter()
                    .map(|at| match &at.host {
                        Host::Address(address) => (Some(*address), at.port),
                        Host::Name(_) => (None, at.port),
                    })
                    .collect(),
            ),
        }
    }

    /// Returns the connections of a remote's clients, which do not cross the link. None at other boxes.
    #[must_use]
    pub(crate) fn clients_of(settings: &Settings) -> Option<Self> {
        let Role::Remote(_) = &settings.role else { return None };
        Some(Self::at_listeners(settings))
    }

    fn at_listeners(settings: &Settings) -> Self {
        let listen = &settings.listen;
        let own = listen.web().map(Sockets::port);
        let requested = WEB_PORTS.into_iter().filter(|_| listen.intercept == Intercept::Tproxy);
        Self::From(own.chain(requested).collect())
    }

    /// Returns true if no connection can be chosen.
    #[must_use]
    pub(crate) fn is_nothing(&self) -> bool {
        match self {
            Self::From(ports) => ports.is_empty(),
            Self::To(ends) => ends.is_empty(),
        }
    }

    /// Returns true if the connection crosses the link. Connections within this host do not: `local` holds its
    /// addresses.
    pub(crate) fn includes(&self, id: &ConnectionId, local: &[IpAddr]) -> bool {
        let remote = id.remote.ip();
        if remote.is_loopback() || local.contains(&remote) {
            return false;
        }
        match self {
            Self::From(ports) => ports.contains(&id.local.port()),
            Self::To(_) => self.leads_to(id.remote),
        }
    }

    /// Returns true if this box opens connections to `remote` that cross the link.
    #[must_use]
    pub(crate) fn leads_to(&self, remote: SocketAddr) -> bool {
        let Self::To(ends) = self else { return false };
        let is_at = |(address, port): &(Option<IpAddr>, u16)| {
            remote.port() == *port && address.is_none_or(|address| address == remote.ip())
        };
        ends.iter().any(is_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(more: &str) -> Watched {
        let text = format!(
            "link: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\nproxy: {{ addresses: [198.51.100.12] }}\n\
             upstream: {{ resolvers: [192.0.2.53] }}\n{more}"
        );
        let loaded = longhaul_config::load_text(std::path::Path::new("longhaul.yaml"), text).unwrap();
        Watched::of(&loaded.settings)
    }

    fn id(local: &str, remote: &str) -> ConnectionId {
        ConnectionId { local: local.parse().unwrap(), remote: remote.parse().unwrap(), cookie: [0; 8] }
    }

    #[test]
    fn a_single_box_watches_its_clients() {
        let redirected = watched("listen: { http: 0.0.0.0:8080, tls: 0.0.0.0:8443 }\n");
        let local: Vec<IpAddr> = vec!["192.0.2.1".parse().unwrap()];
        for (at, from, watched) in [
            ("192.0.2.1:8080", "192.0.2.2:5000", true),
            ("192.0.2.1:8443", "192.0.2.2:5000", true),
            ("192.0.2.1:80", "192.0.2.2:5000", false),
            ("192.0.2.1:5000", "203.0.113.1:8080", false),
            ("192.0.2.1:8080", "192.0.2.1:5000", false),
            ("127.0.0.1:8080", "127.0.0.1:5000", false),
        ] {
            assert_eq!(redirected.includes(&id(at, from), &local), watched, "{at} {from}");
        }
        let transparent = watched("listen: { http: 0.0.0.0:8080, tls: off, intercept: tproxy }\n");
        assert!(transparent.includes(&id("203.0.113.1:443", "192.0.2.2:5000"), &local));
    }

    #[test]
    fn a_dialling_end_watches_its_own_connections() {
        let dialling = Watched::To(vec![(Some("203.0.113.1".parse().unwrap()), 8443)]);
        assert!(dialling.includes(&id("192.0.2.1:5000", "203.0.113.1:8443"), &[]));
        assert!(!dialling.includes(&id("192.0.2.1:5000", "203.0.113.2:8443"), &[]));
        assert!(!dialling.includes(&id("192.0.2.1:8443", "203.0.113.1:5000"), &[]));
    }
}
