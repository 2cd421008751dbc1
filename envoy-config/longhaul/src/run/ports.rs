//! Checks before the start that the sockets are free. Envoy only logs a line about a listener that it cannot open. Two
//! programs with `SO_REUSEPORT` would share a port without an error.

use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use longhaul_config::{Family, Ground, Loaded, LookupTransport, PageListen, PipeTransport, Role, Settings, Sockets};
use longhaul_observe::report::RunReport;
use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};

use super::locate::local_addresses;
use super::log::Level;
use super::say;

/// A socket of this box, and the key that sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListenSocket {
    pub(super) key: &'static str,
    pub(super) socket: SocketAddr,
    pub(super) transport: Protocol,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Tcp,
    Udp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        })
    }
}

/// The time for which a start waits for sockets in use. The sockets of a killed run are free only once the last of its
/// threads has ended, and a supervisor starts the next run at once.
const PATIENCE: Duration = Duration::from_secs(2);
/// The interval of attempts meanwhile.
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// The reason why a socket cannot be used.
#[derive(Debug)]
pub(crate) struct PortError {
    wanted: ListenSocket,
    error: io::Error,
    holder: Option<Holder>,
}

impl PortError {
    /// Returns the warning of a run that starts without the socket.
    pub(super) fn costs_a_transport(&self) -> String {
        format!("{self}. Clients have one transport of encrypted lookups less")
    }

    /// Returns the key that sets the socket.
    pub(super) fn key(&self) -> &'static str {
        self.wanted.key
    }

    /// Returns true if the socket is in use by `run`, or by a process that this user may not see.
    pub(super) fn is_held_by(&self, run: &RunReport) -> bool {
        let children =
            [Some(&run.envoy), Some(&run.coredns), run.images.as_ref(), run.objects.as_ref()].into_iter().flatten();
        let own = || children.filter_map(|child| child.pid).chain([run.pid]);
        let holder = self.holder.as_ref().and_then(|holder| u32::try_from(holder.pid).ok());
        is_taken(&self.error) && holder.is_none_or(|pid| own().any(|one| one == pid))
    }
}

/// The process that has the socket, if /proc shows it.
#[derive(Debug)]
struct Holder {
    pid: i32,
    command: String,
}

/// The key of encrypted lookups, whose ports are fixed.
const ENCRYPTED: &str = "dns.encrypted";

/// The sockets of DNS that the present run has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Present<'p> {
    /// Those of plain lookups.
    pub(super) dns: Option<&'p Sockets>,
    /// The transports of encrypted ones.
    pub(super) encrypted: &'p [LookupTransport],
    /// True if the holder of a port may be about to end.
    pub(super) may_end: bool,
}

/// Returns the settings as this machine can bind them: a kernel without IPv6 (`ipv6.disable=1`) has no `[::]`, and a stub
/// resolver may have the port of DNS at an address of its own. Another program may have a port of encrypted lookups: the
/// reasons for which transports are left out come second.
pub(super) fn on_this_machine(mut loaded: Loaded, present: Present<'_>) -> (Loaded, Vec<PortError>) {
    let mut listen = loaded.settings.listen;
    if !has_ipv6() {
        listen = listen.without_ipv6_wildcards();
    }
    if let Some(dns) = listen.dns.as_ref().filter(|_| listen.dns_is_auto) {
        let addresses = free_addresses(dns, present.dns, local_addresses);
        listen = listen.with_dns_at(&addresses);
    }
    loaded.settings.listen = listen;
    let (taken, reasons): (Vec<LookupTransport>, _) = taken_transports(&loaded.settings, present).into_iter().unzip();
    if let Some(transports) = &mut loaded.settings.dns.encrypted {
        transports.retain(|transport| !taken.contains(transport));
    }
    (loaded, reasons)
}

/// The same for a run, which warns of what is left out.
pub(super) fn for_a_run(loaded: Loaded, present: Present<'_>) -> Loaded {
    let (loaded, reasons) = on_this_machine(loaded, present);
    for reason in reasons {
        say(Level::Warning, &reason.costs_a_transport());
    }
    loaded
}

/// Returns the transports of encrypted lookups whose ports cannot be had, each with the reason.
fn taken_transports(settings: &Settings, present: Present<'_>) -> Vec<(LookupTransport, PortError)> {
    let new = encrypted(settings).filter(|(one, _)| !present.encrypted.contains(one));
    let check = if present.may_end { check_patiently } else { check };
    new.filter_map(|(one, wanted)| Some((one, check(&wanted).pop()?))).collect()
}

/// Returns the sockets of each transport of encrypted lookups.
fn encrypted(settings: &Settings) -> impl Iterator<Item = (LookupTransport, Vec<ListenSocket>)> + '_ {
    let transports = settings.encrypted_lookups().map(|lookups| lookups.transports).unwrap_or_default();
    let of = |one: LookupTransport| {
        let transport = if one.is_udp() { Protocol::Udp } else { Protocol::Tcp };
        let sockets = settings.listen.dns.iter().flat_map(move |plain| one.sockets(plain));
        (one, sockets.map(|socket| ListenSocket { key: ENCRYPTED, socket, transport }).collect())
    };
    transports.into_iter().map(of)
}

/// Returns the addresses of this machine at which the port of `wanted`, which are those of any address, is free. Empty if
/// it is free at any address: those that come later are served as well then.
fn free_addresses(wanted: &Sockets, present: Option<&Sockets>, own: impl FnOnce() -> Vec<IpAddr>) -> Vec<IpAddr> {
    let protocols = [Protocol::Tcp, Protocol::Udp];
    let try_both = |socket| {
        let mut all = protocols.iter();
        all.try_for_each(|transport| try_bind(&ListenSocket { key: "listen.dns", socket, transport: *transport }))
    };
    let has = |address: &IpAddr| present.is_some_and(|sockets| sockets.iter().any(|socket| socket.ip() == *address));
    let is_whole = match present {
        Some(present) => present.has_wildcard(),
        None => !wanted.iter().any(|socket| try_both(socket).is_err_and(|error| is_taken(&error))),
    };
    if is_whole {
        return Vec::new();
    }
    // A link-local address has no meaning without its interface.
    let link_local = |address: &IpAddr| matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
    let mut addresses = own();
    addresses.retain(|address| !link_local(address) && wanted.serves(Family::of(*address)));
    addresses.retain(|address| has(address) || try_both(SocketAddr::new(*address, wanted.port())).is_ok());
    addresses
}

/// Returns true if the kernel makes IPv6 sockets.
fn has_ipv6() -> bool {
    socket(AddressFamily::INET6, SocketType::STREAM, None).is_ok()
}

/// Returns every socket of the settings.
pub(super) fn wanted(settings: &Settings) -> Vec<ListenSocket> {
    let listen = &settings.listen;
    let all = |sockets: &Option<Sockets>| sockets.iter().flat_map(Sockets::iter).collect::<Vec<_>>();
    let one = |socket: Option<SocketAddr>| socket.into_iter().collect();
    let tcp = [
        (http_key(settings), listen.http.iter().collect()),
        ("listen.tls", all(&listen.tls)),
        ("listen.dns", all(&listen.dns)),
        ("tls.acme.listen", one(settings.acme.as_ref().and_then(|acme| acme.listen))),
        ("listen.metrics", one(listen.metrics.and_then(PageListen::if_required))),
        ("listen.status", one(listen.status.and_then(PageListen::if_required))),
        ("listen.health", one(listen.health)),
        ("listen.image_metrics", one(listen.image_metrics)),
    ];
    let quic = match &settings.role {
        Role::Ground(Ground { listen, transport: PipeTransport::H3, .. }) => Some(*listen),
        _ => None,
    };
    let udp = [
        ("listen.dns", all(&listen.dns)),
        ("listen.tls", if settings.offers_http3() { all(&listen.tls) } else { Vec::new() }),
        ("split.listen", one(quic)),
    ];
    let wanted = |(key, sockets): (&'static str, Vec<SocketAddr>), transport| {
        sockets.into_iter().map(move |socket| ListenSocket { key, socket, transport })
    };
    let tcp = tcp.into_iter().flat_map(|listener| wanted(listener, Protocol::Tcp));
    let udp = udp.into_iter().flat_map(|listener| wanted(listener, Protocol::Udp));
    tcp.chain(udp).chain(encrypted(settings).flat_map(|(_, sockets)| sockets)).collect()
}

/// Returns the key of the socket on which requests arrive.
pub(super) fn http_key(settings: &Settings) -> &'static str {
    if settings.role.meets_clients() { "listen.http" } else { "split.listen" }
}

/// Binds each socket and releases it again. Returns the errors.
pub(super) fn check(wanted: &[ListenSocket]) -> Vec<PortError> {
    failures(wanted).map(|(wanted, error)| PortError::new(wanted, error)).collect()
}

/// Checks as for a start: waits, because the holder of a socket may be about to end. Returns at once if waiting cannot
/// help.
pub(super) fn check_patiently(wanted: &[ListenSocket]) -> Vec<PortError> {
    let deadline = Instant::now() + PATIENCE;
    while may_become_free(wanted) && Instant::now() < deadline {
        thread::sleep(TRY_AGAIN);
    }
    check(wanted)
}

fn may_become_free(wanted: &[ListenSocket]) -> bool {
    let mut failures = failures(wanted).peekable();
    failures.peek().is_some() && failures.all(|(_, error)| is_taken(&error))
}

fn failures(wanted: &[ListenSocket]) -> impl Iterator<Item = (ListenSocket, io::Error)> {
    wanted.iter().filter_map(|wanted| try_bind(wanted).err().map(|error| (*wanted, error)))
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}

fn try_bind(wanted: &ListenSocket) -> io::Result<()> {
    match wanted.transport {
        Protocol::Tcp if wanted.socket.is_ipv4() => TcpListener::bind(wanted.socket).map(drop),
        Protocol::Udp if wanted.socket.is_ipv4() => UdpSocket::bind(wanted.socket).map(drop),
        Protocol::Tcp => try_bind_ipv6(SocketType::STREAM, wanted.socket),
        Protocol::Udp => try_bind_ipv6(SocketType::DGRAM, wanted.socket),
    }
}

/// Binds an IPv6 socket as Envoy does: `[::]` leaves the port free for another program's IPv4.
fn try_bind_ipv6(kind: SocketType, address: SocketAddr) -> io::Result<()> {
    let socket: OwnedFd = socket(AddressFamily::INET6, kind, None)?;
    sockopt::set_ipv6_v6only(&socket, true)?;
    if kind == SocketType::STREAM {
        // As Rust's listeners: connections of an earlier listener that still end do not hold the port.
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    bind(&socket, &address)?;
    if kind == SocketType::STREAM {
        rustix::net::listen(&socket, 1)?;
    }
    Ok(())
}

/// The lowest port of [`free_loopback`]. Smaller numbers belong to well-known programs.
const LOWEST_FREE: u16 = 10_000;

/// Returns loopback ports for this process that are free for TCP and UDP. All differ, and none is in `wanted`, whose
/// ports are free too until they are bound.
///
/// CoreDNS and Envoy bind them some time later. So they are ports that the kernel gives to no connection meanwhile, if it has
/// such ports.
pub(super) fn free_loopback<const N: usize>(wanted: &[ListenSocket]) -> io::Result<[SocketAddr; N]> {
    let first = first_of_connections();
    let mut held = Vec::with_capacity(N);
    for _ in 0..16 * N {
        let port = if first > LOWEST_FREE { fastrand::u16(LOWEST_FREE..first) } else { 0 };
        let tcp = match TcpListener::bind(("127.0.0.1", port)) {
            Err(error) if is_taken(&error) => continue,
            tcp => tcp?,
        };
        let socket = tcp.local_addr()?;
        let udp = UdpSocket::bind(socket);
        if wanted.iter().all(|one| one.socket.port() != socket.port()) && udp.is_ok() {
            held.push((socket, tcp, udp));
        }
        if held.len() == N {
            break;
        }
    }
    let sockets: Vec<SocketAddr> = held.iter().map(|(socket, ..)| *socket).collect();
    sockets.try_into().map_err(|_| io::ErrorKind::AddrInUse.into())
}

/// Returns the first port that the kernel gives to connections that bind none. 0: unknown.
fn first_of_connections() -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or_default()
}

impl PortError {
    fn new(wanted: ListenSocket, error: io::Error) -> Self {
        let holder = if is_taken(&error) { holder(&wanted) } else { None };
        Self { wanted, error, holder }
    }
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ListenSocket { key, socket, transport } = &self.wanted;
        let port = socket.port();
        match self.error.kind() {
            io::ErrorKind::AddrInUse => {
                write!(f, "port {port} ({transport}) of {socket}, set by `{key}`, is in use")?;
                match &self.holder {
                    Some(holder) => write!(f, " by {} (process {})", holder.command, holder.pid)?,
                    // systemd hides the processes of others (ProtectProc).
                    None => write!(f, " by another process, which `ss -ltnup 'sport = :{port}'` names as root")?,
                }
                write!(f, "; stop it, or set `{key}` to {}", if *key == ENCRYPTED { "off" } else { "another port" })?;
                if *key == "listen.dns" {
                    write!(
                        f,
                        ". For a stub resolver, such as systemd-resolved with its DNSStubListener, write `auto`"
                    )?;
                }
                Ok(())
            }
            io::ErrorKind::PermissionDenied => write!(
                f,
                "port {port} ({transport}) of {socket}, set by `{key}`, is privileged; run as root, grant CAP_NET_BIND_SERVICE \
                 (systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE), lower net.ipv4.ip_unprivileged_port_start, or {}",
                if *key == ENCRYPTED {
                    format!("set `{key}` to off")
                } else {
                    format!("give `{key}` a port from 1024 on")
                }
            ),
            io::ErrorKind::AddrNotAvailable => {
                write!(
                    f,
                    "{}, set by `{key}`, is not an address of this machine; set `{key}` to one that is, or to 0.0.0.0:{port}",
                    socket.ip()
                )
            }
            _ => write!(f, "cannot listen on {socket} ({transport}), set by `{key}`: {}", self.error),
        }
    }
}

/// Returns the process that has the socket, by the kernel's socket table and the files of each process. Only root sees
/// other users' processes.
fn holder(wanted: &ListenSocket) -> Option<Holder> {
    let inodes = match wanted.transport {
        Protocol::Tcp => tcp_inodes(wanted.socket),
        Protocol::Udp => udp_inodes(wanted.socket),
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

    /// Returns a free port that the kernel gives to no client (`net.ipv4.ip_local_port_range` begins at 32768). A test
    /// beside this one that binds port 0 never gets it.
    fn port_of_no_client() -> u16 {
        let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
        let free =
            |port: &u16| TcpListener::bind(("0.0.0.0", *port)).is_ok() && UdpSocket::bind(("0.0.0.0", *port)).is_ok();
        (first..first + 1000).find(free).unwrap()
    }

    #[test]
    fn a_stub_resolver_at_an_address_of_its_own_leaves_the_others_to_dns() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let [stub, clients, other] = ["127.0.0.53", "127.0.0.7", "127.0.0.8"].map(address);
        let port = port_of_no_client();
        let held = TcpListener::bind((stub, port)).unwrap();
        let any = Sockets::from(SocketAddr::new(address("0.0.0.0"), port));
        let free = |present: Option<SocketAddr>| {
            let present = present.map(Sockets::from);
            free_addresses(&any, present.as_ref(), || vec![stub, clients, other, address("fe80::1"), address("::1")])
        };
        assert_eq!(free(None), [clients, other], "the wildcard is taken");
        let taken = UdpSocket::bind((other, port)).unwrap();
        assert_eq!(free(None), [clients], "a container has it at its own address");
        assert_eq!(free(Some(SocketAddr::new(other, port))), [clients, other], "the run itself has that one");
        assert_eq!(free(Some(SocketAddr::new(address("0.0.0.0"), port))), Vec::<IpAddr>::new(), "and here all");
        drop((held, taken));
        assert_eq!(free(None), Vec::<IpAddr>::new(), "all are free");
    }

    #[test]
    fn an_occupied_port_is_named_with_its_key_and_its_holder_and_a_free_one_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = listener.local_addr().unwrap();
        let wanted = ListenSocket { key: "listen.http", socket, transport: Protocol::Tcp };
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
    fn a_start_waits_for_a_port_that_is_about_to_be_free_and_not_long_for_one_that_stays_taken() {
        let staying = TcpListener::bind("127.0.0.1:0").unwrap();
        let leaving = TcpListener::bind("127.0.0.1:0").unwrap();
        let wanted = |listener: &TcpListener| {
            let socket = listener.local_addr().unwrap();
            ListenSocket { key: "listen.http", socket, transport: Protocol::Tcp }
        };
        let (stays, leaves) = (wanted(&staying), wanted(&leaving));
        assert_eq!(check(&[leaves]).len(), 1, "a change of the file waits for nobody");
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(PATIENCE / 4);
                drop(leaving);
            });
            assert!(check_patiently(&[leaves]).is_empty());
        });
        let began = Instant::now();
        let errors = check_patiently(&[stays]);
        assert!(errors[0].to_string().contains(&format!("(process {})", std::process::id())), "{}", errors[0]);
        assert!((PATIENCE..PATIENCE * 5).contains(&began.elapsed()), "{:?}", began.elapsed());
    }

    #[test]
    fn an_error_that_no_wait_mends_is_reported_at_once() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let wanted = |socket| ListenSocket { key: "listen.http", socket, transport: Protocol::Tcp };
        let both = [wanted(taken.local_addr().unwrap()), wanted("192.0.2.77:8080".parse().unwrap())];
        assert!(!may_become_free(&both));
        assert!(may_become_free(&both[..1]));
        assert_eq!(check_patiently(&both).len(), 2);
    }

    #[test]
    fn ports_of_our_own_are_all_different_and_none_that_a_key_names() {
        let named = |port: u16| port % 4 < 2;
        let wanted: Vec<ListenSocket> = (1024..=u16::MAX)
            .filter(|port| named(*port))
            .map(|port| ListenSocket {
                key: "listen.http",
                socket: SocketAddr::from(([0, 0, 0, 0], port)),
                transport: Protocol::Tcp,
            })
            .collect();
        let ours: [SocketAddr; 8] = free_loopback(&wanted).unwrap();
        assert!(!ours.iter().any(|socket| named(socket.port())), "{ours:?}");
        assert_eq!(ours.iter().collect::<std::collections::BTreeSet<_>>().len(), 8, "{ours:?}");
        let first = first_of_connections();
        let given = |socket: &SocketAddr| socket.port() >= first;
        assert!(first <= LOWEST_FREE || !ours.iter().any(given), "the kernel gives some to connections: {ours:?}");
    }

    #[test]
    fn a_privileged_port_names_the_capability_and_the_other_ways() {
        let wanted =
            ListenSocket { key: "listen.dns", socket: "0.0.0.0:53".parse().unwrap(), transport: Protocol::Udp };
        let message = PortError::new(wanted, io::ErrorKind::PermissionDenied.into()).to_string();
        for part in ["port 53 (UDP)", "`listen.dns`", "CAP_NET_BIND_SERVICE", "net.ipv4.ip_unprivileged_port_start"] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn an_address_of_another_machine_says_so() {
        let socket = "192.0.2.77:8080".parse().unwrap();
        let errors = check(&[ListenSocket { key: "listen.http", socket, transport: Protocol::Tcp }]);
        assert!(errors[0].to_string().contains("is not an address of this machine"), "{}", errors[0]);
    }
}
