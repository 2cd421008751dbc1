//! The kernel's figures of TCP connections, read over netlink (`sock_diag(7)`). No privilege is needed.

use std::io;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::{Nla, TcpInfo};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};

/// The largest part of a dump that the kernel sends is half of this.
const BUFFER: usize = 1 << 16;

/// The families of addresses, each with the identity that every socket matches.
const FAMILIES: [(u8, fn() -> SocketId); 2] = [(AF_INET, SocketId::new_v4), (AF_INET6, SocketId::new_v6)];

/// The protocol in a request for sockets of one whose number is above 255: `IPPROTO_RAW`.
const ABOVE_255: u8 = 255;
/// The attribute with that number, `INET_DIAG_REQ_PROTOCOL` of `linux/inet_diag.h`.
const PROTOCOL: u16 = 3;
/// `IPPROTO_MPTCP`.
const MPTCP: u32 = 262;

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// TCP. A path of Multipath TCP is a connection of it.
    Tcp,
    /// Multipath TCP (RFC 8684).
    Multipath,
}

/// The sockets of a dump, of both families of addresses.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Their protocol.
    pub protocol: Protocol,
    /// The port at this end. 0: any.
    pub source_port: u16,
    /// The port at the other end. 0: any.
    pub destination_port: u16,
    /// Their states.
    pub states: StateFlags,
}

impl Selection {
    /// Returns the TCP connections between these ports, of which 0 is any.
    #[must_use]
    pub fn tcp(source_port: u16, destination_port: u16, states: StateFlags) -> Self {
        Self { protocol: Protocol::Tcp, source_port, destination_port, states }
    }
}

/// A socket to the kernel, which shows the sockets of its network namespace.
#[derive(Debug)]
pub struct KernelSockets(Socket);

impl KernelSockets {
    /// Opens the socket.
    ///
    /// # Errors
    /// The kernel has no `sock_diag`.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self(socket))
    }

    /// Passes the figures of each TCP connection to `take`. With a port, the kernel leaves out the others, which may be tens
    /// of thousands; it goes through its whole table nevertheless, which takes milliseconds on a large machine.
    ///
    /// # Errors
    /// The kernel refuses the request.
    pub fn each(&self, selection: &Selection, mut take: impl FnMut(&InetResponse)) -> io::Result<()> {
        self.each_message(selection, |message| {
            if let SockDiagMessage::InetResponse(response) = message {
                take(&response);
            }
        })
    }

    /// Passes each response of the kernel to `take`, as one that reads other attributes than [`InetResponse`] does.
    ///
    /// # Errors
    /// The kernel does not know the protocol, or refuses the request.
    pub fn each_message<M: NetlinkDeserializable>(
        &self,
        selection: &Selection,
        mut take: impl FnMut(M),
    ) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER];
        for (family, any) in FAMILIES {
            self.0.send(&request(family, any, selection), 0)?;
            while self.take_part(&mut buffer, &mut take)? {}
        }
        Ok(())
    }

    /// Reads one part of a dump. Returns false after the last one.
    fn take_part<M: NetlinkDeserializable>(&self, buffer: &mut [u8], take: &mut impl FnMut(M)) -> io::Result<bool> {
        let length = self.0.recv(&mut &mut *buffer, 0)?;
        let mut rest = buffer.get(..length).unwrap_or_default();
        while !rest.is_empty() {
            let message = NetlinkMessage::<M>::deserialize(rest)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
            match message.payload {
                NetlinkPayload::Done(_) => return Ok(false),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::InnerMessage(message) => take(message),
                _ => {}
            }
            // Each message begins at a multiple of four bytes.
            let step = usize::try_from(message.header.length).unwrap_or(0).next_multiple_of(4);
            rest = rest.get(step.max(1)..).unwrap_or_default();
        }
        Ok(true)
    }
}

/// Returns the kernel's `tcp_info` of a connection.
#[must_use]
pub fn tcp_info(response: &InetResponse) -> Option<&TcpInfo> {
    response.nlas.iter().find_map(|attribute| match attribute {
        Nla::TcpInfo(info) => Some(info),
        _ => None,
    })
}

fn request(family: u8, any: fn() -> SocketId, selection: &Selection) -> Vec<u8> {
    let Selection { protocol, source_port, destination_port, states } = selection.clone();
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let number = match protocol {
        Protocol::Tcp => IPPROTO_TCP,
        Protocol::Multipath => ABOVE_255,
    };
    let socket_id = SocketId { source_port, destination_port, ..any() };
    let request = InetRequest { family, protocol: number, extensions: ExtensionFlags::INFO, states, socket_id };
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    match protocol {
        Protocol::Tcp => bytes,
        Protocol::Multipath => with_number(bytes, MPTCP),
    }
}

/// Adds the number of a protocol above 255 to a request.
fn with_number(mut request: Vec<u8>, number: u32) -> Vec<u8> {
    request.extend([8, PROTOCOL].map(u16::to_ne_bytes).concat());
    request.extend(number.to_ne_bytes());
    let length = u32::try_from(request.len()).unwrap_or(u32::MAX).to_ne_bytes();
    request.iter_mut().zip(length).for_each(|(byte, new)| *byte = new);
    request
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_request_for_multipath_tcp_names_the_protocol_in_an_attribute() {
        let bytes = with_number(vec![72, 0, 0, 0, 20, 0], MPTCP);
        assert_eq!(bytes, [14, 0, 0, 0, 20, 0, 8, 0, 3, 0, 6, 1, 0, 0], "little endian");
    }

    #[test]
    fn a_connection_is_found_by_either_port_and_by_no_other() {
        for bind in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(bind) else { continue };
            let port = listener.local_addr().unwrap().port();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let own = client.local_addr().unwrap().port();
            let kernel = KernelSockets::open().unwrap();
            let found = |source_port, destination_port| {
                let selection = Selection::tcp(source_port, destination_port, StateFlags::ESTABLISHED);
                let mut ports = Vec::new();
                kernel
                    .each(&selection, |response| {
                        assert!(tcp_info(response).is_some());
                        ports.push(response.header.socket_id.source_port);
                    })
                    .unwrap();
                ports
            };
            for ports in [found(0, port), found(own, 0), found(own, port), found(0, 0)] {
                assert!(ports.contains(&own), "{ports:?}");
            }
            for ports in [found(0, 1), found(1, 0), found(own, 1)] {
                assert!(!ports.contains(&own), "{ports:?}");
            }
        }
    }
}
