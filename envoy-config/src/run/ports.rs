//! Are the sockets we want free? Asked before anything is started, because Envoy's own answer is a log line about a
//! listener, and two programs with `SO_REUSEPORT` would share a port without any complaint.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use crate::config::{Ground, PipeTransport, Role, Settings};
use crate::derive::offers_http3;

/// A socket of ours and the key that sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) key: &'static str,
    pub(super) socket: SocketAddr,
    pub(super) transport: Transport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        })
    }
}

/// Why a socket cannot be ours.
#[derive(Debug)]
pub struct PortError {
    wanted: Wanted,
    error: io::Error,
    holder: Option<Holder>,
}

/// The process that has the socket, as far as /proc says.
#[derive(Debug)]
struct Holder {
    pid: i32,
    command: String,
}

/// Every socket the settings ask for.
pub(super) fn wanted(settings: &Settings) -> Vec<Wanted> {
    let listen = &settings.listen;
    let tcp = [
        (http_key(settings), listen.http),
        ("listen.tls", listen.tls),
        ("listen.dns", listen.dns),
        ("listen.admin", Some(listen.admin)),
        ("split.listen", settings.role.dialled_in()),
        ("listen.metrics", if listen.dns.is_some() { listen.metrics } else { None }),
    ];
    let quic = match &settings.role {
        Role::Ground(Ground { remote, transport: PipeTransport::H3, .. }) => remote.listen(),
        _ => None,
    };
    let udp = [
        ("listen.dns", listen.dns),
        ("listen.tls", listen.tls.filter(|_| offers_http3(settings))),
        ("split.listen", quic),
    ];
    let all = |sockets: &[(&'static str, Option<SocketAddr>)], transport| {
        sockets
            .iter()
            .filter_map(move |(key, socket)| socket.map(|socket| Wanted { key, socket, transport }))
            .collect::<Vec<_>>()
    };
    [all(&tcp, Transport::Tcp), all(&udp, Transport::Udp)].concat()
}

/// The key that sets where requests come in.
pub(super) fn http_key(settings: &Settings) -> &'static str {
    if matches!(settings.role, Role::Ground(_)) { "split.listen" } else { "listen.http" }
}

/// Tries to bind each and lets go of it again; all that fail are returned.
pub(super) fn check(wanted: &[Wanted]) -> Vec<PortError> {
    wanted.iter().filter_map(|wanted| try_bind(wanted).err().map(|error| PortError::new(*wanted, error))).collect()
}

fn try_bind(wanted: &Wanted) -> io::Result<()> {
    match wanted.transport {
        Transport::Tcp => TcpListener::bind(wanted.socket).map(drop),
        Transport::Udp => UdpSocket::bind(wanted.socket).map(drop),
    }
}

/// A free loopback TCP port for our own use.
pub(super) fn free_loopback() -> io::Result<SocketAddr> {
    TcpListener::bind(("127.0.0.1", 0))?.local_addr()
}

/// The same, free for UDP as well as TCP.
pub(super) fn free_loopback_for_dns() -> io::Result<SocketAddr> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..16 {
        let tcp = TcpListener::bind(("127.0.0.1", 0))?;
        match UdpSocket::bind(tcp.local_addr()?) {
            Ok(udp) => return udp.local_addr(),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl PortError {
    fn new(wanted: Wanted, error: io::Error) -> Self {
        let holder = if error.kind() == io::ErrorKind::AddrInUse { holder(&wanted) } else { None };
        Self { wanted, error, holder }
    }
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wanted { key, socket, transport } = &self.wanted;
        let port = socket.port();
        match self.error.kind() {
            io::ErrorKind::AddrInUse => {
                write!(f, "port {port} ({transport}) of {socket}, set by `{key}`, is in use")?;
                match &self.holder {
                    Some(holder) => write!(f, " by {} (process {})", holder.command, holder.pid)?,
                    None => write!(f, " by another process")?,
                }
                write!(f, "; stop it, or give `{key}` another port")
            }
            io::ErrorKind::PermissionDenied => write!(
                f,
                "port {port} ({transport}) of {socket}, set by `{key}`, is a privileged one; run as root, grant CAP_NET_BIND_SERVICE \
                 (systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE), lower net.ipv4.ip_unprivileged_port_start, or give `{key}` a port from 1024 on"
            ),
            io::ErrorKind::AddrNotAvailable => {
                write!(
                    f,
                    "{}, set by `{key}`, is not an address of this machine; give `{key}` one that is, or 0.0.0.0:{port}",
                    socket.ip()
                )
            }
            _ => write!(f, "cannot listen on {socket} ({transport}), set by `{key}`: {}", self.error),
        }
    }
}

/// Who has it: from the kernel's socket table to the process with that socket among its files. Other users' processes
/// show only to root.
fn holder(wanted: &Wanted) -> Option<Holder> {
    let inodes = match wanted.transport {
        Transport::Tcp => tcp_inodes(wanted.socket),
        Transport::Udp => udp_inodes(wanted.socket),
    };
    procfs::process::all_processes().ok()?.flatten().find_map(|process| {
        let has = process
            .fd()
            .ok()?
            .flatten()
            .any(|fd| matches!(fd.target, procfs::process::FDTarget::Socket(inode) if inodes.contains(&inode)));
        if !has {
            return None;
        }
        let command = process.stat().map(|stat| stat.comm).unwrap_or_default();
        Some(Holder { pid: process.pid, command })
    })
}

fn tcp_inodes(socket: SocketAddr) -> Vec<u64> {
    let entries = procfs::net::tcp().unwrap_or_default().into_iter().chain(procfs::net::tcp6().unwrap_or_default());
    entries
        .filter(|entry| entry.state == procfs::net::TcpState::Listen && clashes(entry.local_address, socket))
        .map(|entry| entry.inode)
        .collect()
}

fn udp_inodes(socket: SocketAddr) -> Vec<u64> {
    let entries = procfs::net::udp().unwrap_or_default().into_iter().chain(procfs::net::udp6().unwrap_or_default());
    entries.filter(|entry| clashes(entry.local_address, socket)).map(|entry| entry.inode).collect()
}

fn clashes(bound: SocketAddr, wanted: SocketAddr) -> bool {
    bound.port() == wanted.port()
        && (bound.ip() == wanted.ip() || bound.ip().is_unspecified() || wanted.ip().is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_occupied_port_is_named_with_its_key_and_its_holder_and_a_free_one_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = listener.local_addr().unwrap();
        let wanted = Wanted { key: "listen.http", socket, transport: Transport::Tcp };
        let errors = check(&[wanted]);
        assert_eq!(errors.len(), 1);
        let message = errors[0].to_string();
        assert!(
            message.contains(&format!("port {} (TCP) of {socket}, set by `listen.http`", socket.port())),
            "{message}"
        );
        assert!(message.contains(&format!("(process {})", std::process::id())), "{message}");
        drop(listener);
        assert!(check(&[wanted]).is_empty());
    }

    #[test]
    fn a_privileged_port_names_the_capability_and_the_other_ways() {
        let wanted = Wanted { key: "listen.dns", socket: "0.0.0.0:53".parse().unwrap(), transport: Transport::Udp };
        let message = PortError::new(wanted, io::ErrorKind::PermissionDenied.into()).to_string();
        for part in ["port 53 (UDP)", "`listen.dns`", "CAP_NET_BIND_SERVICE", "net.ipv4.ip_unprivileged_port_start"] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn an_address_of_another_machine_says_so() {
        let socket = "192.0.2.77:8080".parse().unwrap();
        let errors = check(&[Wanted { key: "listen.http", socket, transport: Transport::Tcp }]);
        assert!(errors[0].to_string().contains("is not an address of this machine"), "{}", errors[0]);
    }
}
