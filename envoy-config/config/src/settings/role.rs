//! The role of a box, and the sections of the two ends of a pair.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::links::Multipath;
use crate::names::HostPort;
use crate::peer_name::PeerName;

/// The role of a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// A single box on the wired side of the link.
    Edge,
    /// The end of a pair beside the clients.
    Remote(Remote),
    /// The end of a pair on the wired side of the link.
    Ground(Ground),
}

/// A role by its name alone, without the settings of its pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleName {
    /// See [`Role::Edge`].
    Edge,
    /// See [`Role::Remote`].
    Remote,
    /// See [`Role::Ground`].
    Ground,
}

impl RoleName {
    /// Returns the word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Remote => "remote",
            Self::Ground => "ground",
        }
    }
}

impl Role {
    /// Returns the role's name.
    pub fn name(&self) -> RoleName {
        match self {
            Self::Edge => RoleName::Edge,
            Self::Remote(_) => RoleName::Remote,
            Self::Ground(_) => RoleName::Ground,
        }
    }

    /// Returns the word in the file.
    pub fn as_str(&self) -> &'static str {
        self.name().as_str()
    }

    /// Returns true if this box connects to origins, at least at times.
    pub fn reaches_origins(&self) -> bool {
        match self {
            Self::Edge | Self::Ground(_) => true,
            Self::Remote(remote) => remote.when_down == WhenDown::Direct,
        }
    }

    /// Returns the settings of the end beside the clients. None at another box.
    pub fn remote(&self) -> Option<&Remote> {
        match self {
            Self::Remote(remote) => Some(remote),
            Self::Edge | Self::Ground(_) => None,
        }
    }

    /// Returns true for a single box: there is no other end.
    pub fn is_alone(&self) -> bool {
        matches!(self, Self::Edge)
    }

    /// Returns true if this box is at the same end of the link as the clients.
    pub fn stands_beside_clients(&self) -> bool {
        matches!(self, Self::Remote(_))
    }

    /// Returns true if clients connect to this box. A ground meets its remote alone.
    pub fn meets_clients(&self) -> bool {
        !matches!(self, Self::Ground(_))
    }

    /// Returns true if this box rewrites, caches, compresses and recodes what origins send.
    pub fn changes_pages(&self) -> bool {
        !matches!(self, Self::Remote(_))
    }

    /// Returns true if clients get errors while the other end does not respond.
    pub fn needs_the_other_end(&self) -> bool {
        matches!(self, Self::Remote(Remote { when_down: WhenDown::Error, .. }))
    }

    /// Returns true if headers are compressed before they cross the link.
    pub fn packs_headers(&self) -> bool {
        match self {
            Self::Edge => false,
            Self::Remote(remote) => remote.pack_headers,
            Self::Ground(ground) => ground.pack_headers,
        }
    }

    /// Returns the grounds to which this box opens connections. None are left unless it is a remote.
    pub fn grounds(&self) -> &[HostPort] {
        match self {
            Self::Edge | Self::Ground(_) => &[],
            Self::Remote(remote) => &remote.grounds,
        }
    }

    /// Returns the certificate of an end of a pair. None for a single box.
    pub fn identity(&self) -> Option<&Identity> {
        match self {
            Self::Edge => None,
            Self::Remote(remote) => Some(&remote.identity),
            Self::Ground(ground) => Some(&ground.identity),
        }
    }
}

/// The settings of the end beside the clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// The grounds, without duplicates, in the order in which this end uses them. A certificate must be for exactly one of
    /// these hosts. None in a file of an earlier release, whose ground opened the connections.
    pub grounds: Vec<HostPort>,
    /// The certificate of this end, and the authority of the other end's.
    pub identity: Identity,
    /// The number of connections or streams over the link that are open and unused at any time, so that clients'
    /// connections need no handshake. None: the link decides.
    pub warm: Option<u32>,
    /// The treatment of QUIC, which a TCP proxy cannot carry.
    pub udp443: Udp443,
    /// True if listed names get addresses of their own before the ground is queried
    /// ([`Settings::instant_range`](super::Settings::instant_range)). The ground finds the origin by its name.
    pub instant_answers: bool,
    /// True if headers are compressed before they cross the link.
    pub pack_headers: bool,
    /// The result for clients while the ground does not respond.
    pub when_down: WhenDown,
    /// The time in which a ground that refuses connections counts as restarting. Requests that are safe to repeat are
    /// retried meanwhile.
    pub restart_wait: Duration,
    /// The protocol of the pipe.
    pub transport: PipeTransport,
    /// The wish for Multipath TCP, where there are several links.
    pub multipath: Multipath,
}

/// The protocol of the pipe. Clients' bytes use TCP connections in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipeTransport {
    /// HTTP/2 over TCP.
    H2,
    /// HTTP/3 over QUIC: a lost packet delays only the requests to which it belongs.
    H3,
}

/// The behaviour of a remote while the ground does not respond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenDown {
    /// Clients get an error.
    Error,
    /// The remote connects to origins itself, over any route of its host.
    Direct,
}

/// The settings of the end on the wired side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ground {
    /// The socket on which this end listens for remotes.
    pub listen: SocketAddr,
    /// The accepted names of remotes, at least one. The certificate of a remote must have one of them.
    pub remotes: Vec<PeerName>,
    /// The files from which some of the names come. A change of one is a change of the configuration.
    pub remote_files: Vec<PathBuf>,
    /// True if headers are compressed before they cross the link, provided that the remote compresses too.
    pub pack_headers: bool,
    /// The protocols of remotes: HTTP/2 always, and HTTP/3 if configured.
    pub transport: PipeTransport,
    /// The wish for Multipath TCP from remotes with several links.
    pub multipath: Multipath,
    /// The certificate of this end, and the authority of the other end's.
    pub identity: Identity,
}

/// A certificate for mutual TLS, and the authority of the other end's. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// PEM certificate chain.
    pub cert: PathBuf,
    /// PEM private key.
    pub key: PathBuf,
    /// PEM certificates of the authorities that sign for this pair only.
    pub ca: PathBuf,
}

/// The treatment of UDP to port 443 from clients of a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Udp443 {
    /// Routed as usual: QUIC bypasses the pair.
    Pass,
    /// Refused with ICMP, so that browsers use TCP, and with it the pair, at once.
    Refuse,
}
