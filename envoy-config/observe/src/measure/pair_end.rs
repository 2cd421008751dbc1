//! The connections of a pair's end over the link, as the kernel knows them.

use std::io;

use longhaul_config::{Link, Role, Settings};

use super::kernel::{Connection, Kernel};
use super::watched::Watched;

/// The connections of a pair's end. An edge has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairEnd {
    /// The link.
    pub link: Link,
    connections: PairConnections,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PairConnections {
    /// A remote's, to these ports of its grounds.
    To { watched: Watched, ports: Vec<u16> },
    /// A ground's, from its remotes. A remote may end at any time, so its silence means nothing.
    From { port: u16 },
}

impl PairEnd {
    /// Returns those of this box, which `settings` describe.
    pub fn of(settings: &Settings) -> Option<Self> {
        let connections = match &settings.role {
            Role::Edge => return None,
            Role::Ground(ground) => PairConnections::From { port: ground.listen.port() },
            Role::Remote(remote) => {
                let mut ports: Vec<u16> = remote.grounds.iter().map(|at| at.port).collect();
                ports.sort_unstable();
                ports.dedup();
                PairConnections::To { watched: Watched::of(settings), ports }
            }
        };
        Some(Self { link: settings.link.clone(), connections })
    }

    /// Reads the connections over the link.
    pub fn read(&self, kernel: &Kernel) -> io::Result<Vec<Connection>> {
        match &self.connections {
            PairConnections::From { port } => kernel.connections_from(*port),
            PairConnections::To { watched, ports } => {
                let mut connections = Vec::new();
                for port in ports {
                    connections.extend(kernel.connections_to(*port)?);
                }
                connections.retain(|connection| watched.leads_to(connection.id.remote));
                Ok(connections)
            }
        }
    }

    /// Returns the number of a remote's connections that it opens or has not closed. A ground opens none.
    ///
    /// # Errors
    /// The kernel refuses the request.
    pub fn opened(&self, kernel: &Kernel) -> io::Result<usize> {
        let PairConnections::To { watched, ports } = &self.connections else { return Ok(0) };
        let mut number = 0;
        for port in ports {
            number += kernel.others_at(*port)?.into_iter().filter(|other| watched.leads_to(*other)).count();
        }
        Ok(number)
    }

    /// Returns the number of a remote's connections of Multipath TCP that have no path left. The kernel keeps them for
    /// `net.mptcp.close_timeout`, because a path may come back, and tells their program nothing. While their first path is
    /// still being closed, it counts a path that has gone (Linux 6.18). So paths are counted apart, too.
    ///
    /// # Errors
    /// The kernel has no Multipath TCP, or refuses the request.
    pub fn without_paths(&self, kernel: &Kernel) -> io::Result<usize> {
        let PairConnections::To { watched, ports } = &self.connections else { return Ok(0) };
        let (mut all, mut without) = (0_usize, 0);
        for port in ports {
            for one in kernel.paths_to(*port)?.iter().filter(|one| watched.leads_to(one.other)) {
                all += 1;
                without += usize::from(one.number == Some(0));
            }
        }
        Ok(without.max(all.saturating_sub(self.opened(kernel)?)))
    }

    /// Returns true if one of its connections is established. Envoy's counters have those that it only tries, too.
    pub fn is_connected(connections: &[Connection]) -> bool {
        connections.iter().any(|one| one.is_open)
    }

    /// Returns the TCP port of the ground.
    pub fn port(&self) -> u16 {
        match &self.connections {
            PairConnections::From { port } => *port,
            PairConnections::To { ports, .. } => ports.first().copied().unwrap_or(0),
        }
    }

    /// Returns true for the end that notices a silence.
    pub fn hears(&self) -> bool {
        matches!(self.connections, PairConnections::To { .. })
    }
}
