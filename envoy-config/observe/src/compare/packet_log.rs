//! Reads the copies of packets from the kernel's log (`nfnetlink_log`), over netlink. It needs `CAP_NET_ADMIN`.

use std::io;
use std::time::Duration;

use longhaul_config::share::{Group, Share};
use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_netfilter::nflog::{ConfigCmd, ConfigMode, ConfigNla, PacketNla, ULogMessage, config_request};
use netlink_packet_netfilter::{NetfilterMessage, NetfilterMessageInner, NetfilterProtoFamily};
use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};

/// The largest message of the log, in bytes. The kernel sends less.
const BUFFER: usize = 1 << 16;
/// The bytes of a packet that are copied. The packet rules copy fewer.
const COPIED: u32 = 256;

/// The headers of a packet of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copy {
    /// The group of its client.
    pub group: Group,
    /// The packet from its IP header on.
    pub packet: Vec<u8>,
}

/// The log with the copies of the packet rules.
#[derive(Debug)]
pub(crate) struct PacketLog(Socket);

impl PacketLog {
    /// Opens the log of this network namespace. A read waits at most `patience`.
    ///
    /// # Errors
    /// The process has no `CAP_NET_ADMIN`, another process reads the log, or the kernel has none.
    pub(crate) fn open(patience: Duration) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_NETFILTER)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(patience))?;
        let log = Self(socket);
        // Each packet is sent at once: the time of its arrival here counts.
        let options = [ConfigNla::from(ConfigCmd::Bind), ConfigMode::new_packet(COPIED).into(), ConfigNla::QThresh(1)];
        let request = config_request(NetfilterProtoFamily::Unspec, Share::NFLOG_GROUP, options.into());
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        log.0.send(&bytes, 0)?;
        log.read().map(|_| log)
    }

    /// Returns the packets that came next. There are none after the patience. Packets that came too fast for this
    /// process are lost.
    ///
    /// # Errors
    /// The kernel refuses the log.
    pub(crate) fn read(&self) -> io::Result<Vec<Copy>> {
        let mut buffer = vec![0; BUFFER];
        let length = match self.0.recv(&mut buffer.as_mut_slice(), 0) {
            Ok(length) => length,
            Err(error) if passes(&error) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        copies(buffer.get(..length).unwrap_or_default())
    }
}

/// Returns true for an error after which the next read may succeed.
fn passes(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::AGAIN, Errno::INTR, Errno::NOBUFS]
        .iter()
        .any(|passing| error.raw_os_error() == Some(passing.raw_os_error()))
}

/// Returns the packets in a part of the log.
fn copies(mut rest: &[u8]) -> io::Result<Vec<Copy>> {
    let mut copies = Vec::new();
    while !rest.is_empty() {
        let message = NetlinkMessage::<NetfilterMessage>::deserialize(rest)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        match message.payload {
            // The code 0 is an acknowledgement.
            NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
            NetlinkPayload::InnerMessage(NetfilterMessage {
                inner: NetfilterMessageInner::ULog(ULogMessage::Packet(attributes)),
                ..
            }) => copies.extend(copy(attributes)),
            _ => {}
        }
        // Each message begins at a multiple of four bytes.
        let step = usize::try_from(message.header.length).unwrap_or(0).next_multiple_of(4);
        rest = rest.get(step.max(1)..).unwrap_or_default();
    }
    Ok(copies)
}

fn copy(attributes: Vec<PacketNla>) -> Option<Copy> {
    let group = attributes.iter().find_map(|attribute| match attribute {
        PacketNla::Prefix(prefix) => {
            Group::BOTH.into_iter().find(|group| group.prefix().as_bytes() == prefix.as_bytes())
        }
        _ => None,
    })?;
    let packet = attributes.into_iter().find_map(|attribute| match attribute {
        PacketNla::Payload(packet) => Some(packet),
        _ => None,
    })?;
    Some(Copy { group, packet })
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use netlink_packet_core::NetlinkHeader;
    use netlink_packet_netfilter::NetfilterHeader;
    use proptest::prelude::*;

    use super::*;

    fn message(prefix: &str, packet: &[u8]) -> Vec<u8> {
        let attributes = vec![PacketNla::Prefix(CString::new(prefix).unwrap()), PacketNla::Payload(packet.to_vec())];
        let header = NetfilterHeader::new(NetfilterProtoFamily::IPv4, 0, Share::NFLOG_GROUP);
        let inner = NetfilterMessage::new(header, ULogMessage::Packet(attributes));
        let mut message = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(inner));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len().next_multiple_of(4)];
        message.serialize(&mut bytes);
        bytes
    }

    #[test]
    fn the_prefix_of_the_rules_tells_the_group() {
        let part =
            [message("longhaul-direct", &[1, 2]), message("another", &[3]), message("longhaul-accelerated", &[4])];
        let direct = Copy { group: Group::Direct, packet: vec![1, 2] };
        let accelerated = Copy { group: Group::Accelerated, packet: vec![4] };
        assert_eq!(copies(&part.concat()).unwrap(), [direct, accelerated]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes: Vec<u8>, at in 0..60_usize, byte: u8) {
            let _ = copies(&bytes);
            let mut changed = message("longhaul-direct", &[0; 40]);
            changed[at] = byte;
            let _ = copies(&changed);
        }
    }
}
