//! The bytes that the kernel has not sent yet to the other end of a link, read over netlink (`sock_diag(7)`). No privilege is needed.

use std::io;
use std::time::Duration;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};

/// The least time between two readings. A dump goes through the kernel's whole table, which takes milliseconds on a large machine.
const PAUSE: Duration = Duration::from_millis(50);
/// A connection without an acknowledgement for so long sends nothing, and nobody should wait for it.
const SILENCE_MS: u32 = 3000;
/// The largest part of a dump that the kernel sends is half of this.
const BUFFER: usize = 1 << 16;

/// The last reading.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    kernel: Option<Kernel>,
    /// True if the kernel gives no figures.
    is_refused: bool,
    read_at: Option<Duration>,
    bytes: u64,
}

impl Unsent {
    /// Returns the most unsent bytes of a connection to these ports, `now` or some milliseconds ago. 0 where the kernel gives no
    /// figures.
    pub(super) fn to(&mut self, ports: &[u16], now: Duration) -> u64 {
        if ports.is_empty() || self.is_refused {
            return 0;
        }
        if self.read_at.is_none_or(|at| now.saturating_sub(at) >= PAUSE) {
            self.read_at = Some(now);
            let bytes = self.read(ports);
            self.is_refused = bytes.is_err();
            self.bytes = bytes.unwrap_or_default();
        }
        self.bytes
    }

    fn read(&mut self, ports: &[u16]) -> io::Result<u64> {
        let kernel = match self.kernel.take() {
            Some(kernel) => kernel,
            None => Kernel::open()?,
        };
        let kernel = self.kernel.insert(kernel);
        ports.iter().try_fold(0, |most, port| Ok(kernel.unsent_to(*port)?.max(most)))
    }
}

/// A socket to the kernel.
#[derive(Debug)]
struct Kernel {
    socket: Socket,
    buffer: Vec<u8>,
}

impl Kernel {
    fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, buffer: vec![0; BUFFER] })
    }

    /// Returns the most unsent bytes of a connection to this port.
    fn unsent_to(&mut self, port: u16) -> io::Result<u64> {
        let mut most = 0;
        for (family, any) in [(AF_INET, SocketId::new_v4 as fn() -> SocketId), (AF_INET6, SocketId::new_v6)] {
            let socket_id = SocketId { destination_port: port, ..any() };
            self.socket.send(&request(family, socket_id), 0)?;
            while self.take_part(&mut |response| most = most.max(unsent(response)))? {}
        }
        Ok(most)
    }

    /// Reads one part of a dump. Returns false after the last one.
    fn take_part(&mut self, take: &mut impl FnMut(&InetResponse)) -> io::Result<bool> {
        let length = self.socket.recv(&mut self.buffer.as_mut_slice(), 0)?;
        let mut rest = self.buffer.get(..length).unwrap_or_default();
        while !rest.is_empty() {
            let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
            match message.payload {
                NetlinkPayload::Done(_) => return Ok(false),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => take(&response),
                _ => {}
            }
            // Each message begins at a multiple of four bytes.
            let step = usize::try_from(message.header.length).unwrap_or(0).next_multiple_of(4);
            rest = rest.get(step.max(1)..).unwrap_or_default();
        }
        Ok(true)
    }
}

fn request(family: u8, socket_id: SocketId) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let (extensions, states) = (ExtensionFlags::INFO, StateFlags::ESTABLISHED);
    let request = InetRequest { family, protocol: IPPROTO_TCP, extensions, states, socket_id };
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

fn unsent(response: &InetResponse) -> u64 {
    let info = response.nlas.iter().find_map(|attribute| match attribute {
        Nla::TcpInfo(info) => Some(info),
        _ => None,
    });
    info.filter(|info| info.last_ack_recv < SILENCE_MS).map_or(0, |info| u64::from(info.notsent_bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const NEVER: Duration = Duration::ZERO;

    #[test]
    fn what_a_connection_has_not_sent_is_seen_in_both_families_and_read_again_after_a_pause() {
        for bind in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(bind) else { continue };
            let port = listener.local_addr().unwrap().port();
            let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (_accepted, _) = listener.accept().unwrap();
            let mut unsent = Unsent::default();
            assert_eq!((unsent.to(&[], NEVER), unsent.to(&[port], NEVER)), (0, 0));
            // Nobody reads, so the window closes.
            stream.set_nonblocking(true).unwrap();
            while stream.write(&[0; 4096]).is_ok() {}
            assert_eq!(unsent.to(&[port], PAUSE / 2), 0, "too soon");
            assert!(unsent.to(&[port], PAUSE) > 0);
            assert_eq!(unsent.to(&[1], PAUSE * 2), 0, "another port");
        }
    }
}
