//! The kernel's figures of the connections of this machine.

use std::io;
use std::net::SocketAddr;

use kernel_sockets::{KernelSockets, Protocol, Selection, tcp_info};
use netlink_packet_sock_diag::constants::TCP_ESTABLISHED;
use netlink_packet_sock_diag::inet::nlas::TcpInfo;
use netlink_packet_sock_diag::inet::{InetResponse, StateFlags};

use super::multipath::{self, Paths};

/// The minimum of a connection that has measured no round trip yet.
const NO_RTT: u32 = u32::MAX;
/// The bit of `tcpi_delivery_rate_app_limited` in its byte of `tcp_info`.
const APP_LIMITED: u8 = 1;

/// The identity of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionId {
    /// The address on this machine.
    pub local: SocketAddr,
    /// The other address.
    pub remote: SocketAddr,
    /// The kernel's number, which no later connection has.
    pub cookie: [u8; 8],
}

/// A connection with its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// Its identity.
    pub id: ConnectionId,
    /// False if this end closed it, and its last bytes wait for an acknowledgement.
    pub is_open: bool,
    /// True if Multipath TCP carries it. False also for those without `CAP_NET_ADMIN`.
    pub is_multipath: bool,
    /// The minimum of the round-trip time, in microseconds. None if nothing was acknowledged yet.
    pub(crate) min_rtt_us: Option<u32>,
    /// The mean of the last round-trip times (RFC 6298), in microseconds. It has the queues in it.
    pub(crate) rtt_us: u32,
    /// The last delivery rate, in bytes per second. 0 if there is none.
    pub(crate) delivery_rate: u64,
    /// True if this rate shows the sender's lack of data, and not the network.
    pub(crate) app_limited: bool,
    /// The bytes that have reached the other end, in whole segments. Those behind a loss count as they arrive, which a
    /// cumulative acknowledgement would report all at once.
    pub(crate) delivered: u64,
    /// The segments that were sent.
    pub(crate) segments: u32,
    /// Those of them with data.
    pub(crate) data_segments: u32,
    /// The segments that were sent again.
    pub(crate) sent_again: u32,
    /// The bytes of data in them. A handshake that is sent again has none.
    pub(crate) bytes_sent_again: u64,
    /// The segments that the other end reported to have twice (RFC 2883): they were sent again without a loss.
    pub(crate) sent_needlessly: u32,
    /// The segments that the other end has not acknowledged yet.
    pub unacknowledged: u32,
    /// The bytes that wait to be sent for the first time.
    pub(crate) unsent: u32,
    /// The bytes that came from the other end.
    pub received: u64,
    /// The bytes that the other end has acknowledged, without those behind a loss.
    pub acknowledged_bytes: u64,
    /// The most bytes of a segment, as this end has learned.
    pub(crate) segment_bytes: u32,
    /// The size of IP packets to the other end that this kernel believes in, in bytes.
    pub(crate) packet_bytes: u32,
    /// The time since the last acknowledgement came, in milliseconds.
    pub(crate) acknowledged_ms_ago: u32,
    /// The time since the last bytes came, in milliseconds. Without any, the time since the connection was made.
    pub(crate) received_ms_ago: u32,
    /// The time since the last bytes were sent, in milliseconds. Bytes that are sent again count.
    pub(crate) sent_ms_ago: u32,
}

#[cfg(test)]
impl Connection {
    /// Returns an open connection to a server's port 8443 that has sent and got nothing.
    pub(super) fn idle(number: u16) -> Self {
        let id = ConnectionId {
            local: ([192, 0, 2, 1], 5000_u16.wrapping_add(number)).into(),
            remote: ([192, 0, 2, 2], 8443).into(),
            cookie: [0; 8],
        };
        Self {
            id,
            is_open: true,
            is_multipath: false,
            min_rtt_us: None,
            rtt_us: 0,
            delivery_rate: 0,
            app_limited: true,
            delivered: 0,
            segments: 0,
            data_segments: 0,
            sent_again: 0,
            bytes_sent_again: 0,
            sent_needlessly: 0,
            unacknowledged: 0,
            unsent: 0,
            received: 0,
            acknowledged_bytes: 0,
            segment_bytes: 1448,
            packet_bytes: 1500,
            acknowledged_ms_ago: 0,
            received_ms_ago: 0,
            sent_ms_ago: 0,
        }
    }
}

/// A socket to the kernel.
#[derive(Debug)]
pub struct Kernel(KernelSockets);

impl Kernel {
    /// Opens the socket.
    ///
    /// # Errors
    /// The kernel has no `sock_diag`.
    pub fn open() -> io::Result<Self> {
        KernelSockets::open().map(Self)
    }

    /// Returns the established TCP connections of this network namespace.
    ///
    /// # Errors
    /// The kernel refuses the request.
    pub fn connections(&self) -> io::Result<Vec<Connection>> {
        self.dump(0, 0, StateFlags::ESTABLISHED)
    }

    /// Returns those whose other end has this port, also those that this end closed and the other end has not
    /// acknowledged. The kernel leaves out the others, which may be tens of thousands.
    ///
    /// # Errors
    /// The kernel refuses the request.
    pub fn connections_to(&self, port: u16) -> io::Result<Vec<Connection>> {
        self.dump(0, port, StateFlags::ESTABLISHED | StateFlags::FIN_WAIT1)
    }

    /// Returns the other ends of those that this host opens or has opened to this port, and has not closed.
    ///
    /// # Errors
    /// The kernel refuses the request.
    pub(crate) fn others_at(&self, port: u16) -> io::Result<Vec<SocketAddr>> {
        let mut others = Vec::new();
        let states = StateFlags::ESTABLISHED | StateFlags::SYN_SENT | StateFlags::CLOSE_WAIT;
        self.0.each(&Selection::tcp(0, port, states), |response| {
            let id = &response.header.socket_id;
            others.push(SocketAddr::new(id.destination_address.to_canonical(), id.destination_port));
        })?;
        Ok(others)
    }

    /// Returns the established ones that came in at this port.
    ///
    /// # Errors
    /// The kernel refuses the request.
    pub(crate) fn connections_from(&self, port: u16) -> io::Result<Vec<Connection>> {
        self.dump(port, 0, StateFlags::ESTABLISHED)
    }

    /// Returns the number of handshakes at the listeners of this port that the other end has not finished.
    ///
    /// # Errors
    /// The kernel refuses the request.
    pub fn handshakes_at(&self, port: u16) -> io::Result<usize> {
        let mut count = 0;
        self.0.each(&Selection::tcp(port, 0, StateFlags::SYN_RECV), |_| count += 1)?;
        Ok(count)
    }

    /// Returns the connections of Multipath TCP to this port, with the number of their paths.
    ///
    /// # Errors
    /// The kernel has no Multipath TCP, or refuses the request.
    pub(super) fn paths_to(&self, port: u16) -> io::Result<Vec<Paths>> {
        let mut found = Vec::new();
        let selection = Selection { protocol: Protocol::Multipath, ..Selection::tcp(0, port, StateFlags::ESTABLISHED) };
        self.0.each_message(&selection, |paths: Paths| found.push(paths))?;
        Ok(found)
    }

    /// Returns the connections between these ports, of which 0 is any.
    fn dump(&self, source_port: u16, destination_port: u16, states: StateFlags) -> io::Result<Vec<Connection>> {
        let mut connections = Vec::new();
        self.0.each(&Selection::tcp(source_port, destination_port, states), |response| {
            connections.extend(connection(response));
        })?;
        Ok(connections)
    }
}

fn connection(response: &InetResponse) -> Option<Connection> {
    let socket = &response.header.socket_id;
    let info = tcp_info(response)?;
    let id = ConnectionId {
        local: SocketAddr::new(socket.source_address.to_canonical(), socket.source_port),
        remote: SocketAddr::new(socket.destination_address.to_canonical(), socket.destination_port),
        cookie: socket.cookie,
    };
    Some(figures(id, info, multipath::is_agreed(&response.nlas)))
}

fn figures(id: ConnectionId, info: &TcpInfo, is_multipath: bool) -> Connection {
    Connection {
        id,
        is_open: info.state == TCP_ESTABLISHED,
        is_multipath,
        min_rtt_us: Some(info.min_rtt).filter(|rtt| !matches!(*rtt, 0 | NO_RTT)),
        rtt_us: info.rtt,
        delivery_rate: info.delivery_rate,
        app_limited: info.delivery_rate_app_limited & APP_LIMITED != 0
            || is_multipath && has_room([info.notsent_bytes, info.snd_mss], [info.unacked, info.snd_cwnd]),
        delivered: u64::from(info.delivered) * u64::from(info.snd_mss),
        segments: info.segs_out,
        data_segments: info.data_segs_out,
        sent_again: info.total_retrans,
        bytes_sent_again: info.bytes_retrans,
        sent_needlessly: info.dsack_dups,
        unacknowledged: info.unacked,
        unsent: info.notsent_bytes,
        received: info.bytes_received,
        acknowledged_bytes: info.bytes_acked,
        segment_bytes: info.snd_mss,
        packet_bytes: info.pmtu,
        acknowledged_ms_ago: info.last_ack_recv,
        received_ms_ago: info.last_data_recv,
        sent_ms_ago: info.last_data_sent,
    }
}

/// Returns true if no segment waits, and the window has room for one more: the sender's lack of data bounds the connection. The
/// kernel (Linux 6.18) marks no rate of Multipath TCP, so the present state has to tell.
fn has_room([unsent, segment]: [u32; 2], [under_way, window]: [u32; 2]) -> bool {
    unsent < segment && under_way < window
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_path_without_bytes_to_send_shows_no_rate_of_its_link() {
        assert!(has_room([0, 1400], [1, 10]), "a health check");
        assert!(!has_room([1400, 1400], [1, 10]));
        assert!(!has_room([0, 1400], [10, 10]));
    }

    #[test]
    fn a_connection_of_this_machine_is_found_with_its_figures() {
        for bind in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(bind) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            server.write_all(&[7; 1000]).unwrap();
            (&client).read_exact(&mut [0; 1000]).unwrap();
            let found = || {
                let all = Kernel::open().unwrap().connections().unwrap();
                all.into_iter().find(|one| one.id.local == server.local_addr().unwrap())
            };
            let mut connection = found().unwrap();
            while connection.delivered < 1000 {
                connection = found().unwrap();
            }
            assert_eq!(connection.id.remote, client.local_addr().unwrap());
            assert!(connection.min_rtt_us.is_some_and(|rtt| rtt < 1_000_000), "{connection:?}");
            assert!(connection.segments >= 1, "{connection:?}");
            assert_eq!((connection.received, connection.unacknowledged), (0, 0), "{connection:?}");
            let to = |port| Kernel::open().unwrap().connections_to(port).unwrap();
            let (near, far) = (connection.id.remote.port(), connection.id.local.port());
            assert!(to(near).iter().any(|one| one.id == connection.id), "{connection:?}");
            assert!(!to(far).iter().any(|one| one.id == connection.id), "{connection:?}");
            let of_client = to(far).into_iter().find(|one| one.id.local == connection.id.remote).unwrap();
            assert_eq!(of_client.received, 1000, "{of_client:?}");
        }
    }
}
