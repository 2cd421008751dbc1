//! Tells Multipath TCP (RFC 8684) from TCP in the kernel's attributes of a socket: `INET_DIAG_ULP_INFO` of
//! `linux/inet_diag.h`, and in it the flags of `linux/mptcp.h`. The kernel shows them to those with `CAP_NET_ADMIN`.
//! It counts the paths of a connection of Multipath TCP for everybody (`mptcp_info` in `linux/mptcp.h`).

use std::net::SocketAddr;

use netlink_packet_core::{
    DecodeError, Emitable, NetlinkDeserializable, NetlinkHeader, Nla as Attribute, NlasIterator, Parseable,
};
use netlink_packet_sock_diag::inet::InetResponseHeader;
use netlink_packet_sock_diag::inet::nlas::Nla;

/// The attribute of the protocol above TCP.
const UPPER: u16 = 19;
/// Its part of Multipath TCP.
const MULTIPATH: u16 = 3;
/// The flags in it.
const FLAGS: u16 = 8;
/// The other end has agreed: with the first path of a connection, or with a further one.
const AGREED: u32 = 1 | 1 << 2;

/// The attribute of a response with `mptcp_info`: `INET_DIAG_INFO`.
const INFO: u16 = 2;
/// The place of `mptcpi_subflows_total` in it (Linux 6.10).
const PATHS_AT: usize = 80;

/// The paths of a connection of Multipath TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Paths {
    /// The other end.
    pub(super) other: SocketAddr,
    /// Their number, also of those that are being opened. None: an older kernel does not tell.
    pub(super) number: Option<u8>,
}

impl NetlinkDeserializable for Paths {
    type Error = DecodeError;

    fn deserialize(_: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        let header = InetResponseHeader::parse(payload)?;
        let attributes = payload.get(header.buffer_len()..).unwrap_or_default();
        let other = &header.socket_id;
        Ok(Self {
            other: SocketAddr::new(other.destination_address.to_canonical(), other.destination_port),
            number: part(attributes, INFO).and_then(|info| info.get(PATHS_AT).copied()),
        })
    }
}

/// Returns true if both ends carry a socket's bytes by Multipath TCP. A socket that has fallen back to TCP has the
/// attribute, and no agreement.
pub(super) fn is_agreed(attributes: &[Nla]) -> bool {
    attributes.iter().any(|attribute| match attribute {
        Nla::Other(upper) if upper.kind() == UPPER => {
            let mut parts = vec![0; upper.value_len()];
            upper.emit_value(&mut parts);
            flags(&parts).is_some_and(|flags| flags & AGREED != 0)
        }
        _ => false,
    })
}

fn flags(upper: &[u8]) -> Option<u32> {
    let flags = part(&part(upper, MULTIPATH)?, FLAGS)?;
    Some(u32::from_ne_bytes(flags.try_into().ok()?))
}

/// Returns the value of the first attribute of this kind.
fn part(attributes: &[u8], kind: u16) -> Option<Vec<u8>> {
    NlasIterator::new(attributes).flatten().find(|one| one.kind() == kind).map(|one| one.value().to_vec())
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::DefaultNla;

    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(value.len() + 4).unwrap();
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// Returns the attributes of a socket with these flags, as the kernel nests them.
    fn socket(flags: u32) -> Vec<Nla> {
        const NESTED: u16 = 1 << 15;
        let parts = [attribute(1, &7_u32.to_ne_bytes()), attribute(FLAGS, &flags.to_ne_bytes())].concat();
        let upper = [attribute(1, b"mptcp\0"), attribute(MULTIPATH | NESTED, &parts)].concat();
        vec![Nla::Other(DefaultNla::new(UPPER, upper))]
    }

    #[test]
    fn a_response_has_the_paths() {
        let response = |info: &[u8]| {
            let mut header = vec![0; 72];
            // IPv4, established, from port 1 to 192.0.2.7 at port 8443.
            header.splice(..8, [2, 1, 0, 0, 0, 1, 0x20, 0xfb]);
            header.splice(24..28, [192, 0, 2, 7]);
            [header, attribute(8, &[0]), attribute(INFO, info)].concat()
        };
        let read = |bytes: &[u8]| Paths::deserialize(&NetlinkHeader::default(), bytes).unwrap();
        let mut info = [9; 96];
        for number in [0, 2] {
            info[PATHS_AT] = number;
            assert_eq!(
                read(&response(&info)),
                Paths { other: "192.0.2.7:8443".parse().unwrap(), number: Some(number) }
            );
        }
        assert_eq!(read(&response(&info[..80])).number, None, "an older kernel");
        assert!(Paths::deserialize(&NetlinkHeader::default(), &[2, 1]).is_err());
    }

    #[test]
    fn a_path_is_one_of_multipath_tcp_if_the_other_end_agreed() {
        const WISHED: u32 = 1 << 1 | 1 << 7;
        assert!(is_agreed(&socket(WISHED | 1)), "the first path");
        assert!(is_agreed(&socket(1 << 2 | 1 << 3)), "a further one");
        assert!(!is_agreed(&socket(WISHED)), "a firewall removed the option");
        assert!(!is_agreed(&[]), "TCP");
        let broken = |bytes: &[u8]| is_agreed(&[Nla::Other(DefaultNla::new(UPPER, bytes.to_vec()))]);
        assert!(!broken(&[]) && !broken(&[9, 0, 3, 0]) && !broken(&attribute(MULTIPATH, &attribute(FLAGS, &[1]))));
    }
}
