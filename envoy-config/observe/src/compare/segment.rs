//! Reads the headers of a TCP segment from the copy of a packet.

use std::net::{IpAddr, SocketAddr};

const TCP: u8 = 6;
/// The flags of RFC 9293 section 3.1.
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// A TCP segment without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Its source.
    pub from: SocketAddr,
    /// Its destination.
    pub to: SocketAddr,
    /// The flags of the header.
    flags: u8,
    /// The number of its bytes behind the header.
    pub payload: usize,
}

impl Segment {
    /// Reads a packet that begins with an IP header. The copy may end before the packet does. Returns None for anything
    /// but a TCP segment, for a fragment behind the first one, and for IPv6 packets with extension headers.
    #[must_use]
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Self::of_ipv4(packet),
            6 => Self::of_ipv6(packet),
            _ => None,
        }
    }

    /// RFC 791 section 3.1.
    fn of_ipv4(packet: &[u8]) -> Option<Self> {
        let header_len = usize::from(packet.first()? & 0xf) * 4;
        let length = usize::from(number(packet, 2)?);
        let offset = number(packet, 6)? & 0x1fff;
        if *packet.get(9)? != TCP || offset != 0 || header_len < 20 {
            return None;
        }
        let address = |at: usize| packet.get(at..at + 4)?.try_into().ok().map(<[u8; 4]>::into).map(IpAddr::V4);
        let (from, to): (IpAddr, IpAddr) = (address(12)?, address(16)?);
        Self::of_tcp(packet.get(header_len..)?, from, to, length.checked_sub(header_len)?)
    }

    /// RFC 8200 section 3.
    fn of_ipv6(packet: &[u8]) -> Option<Self> {
        const HEADER: usize = 40;
        if *packet.get(6)? != TCP {
            return None;
        }
        let address = |at: usize| packet.get(at..at + 16)?.try_into().ok().map(<[u8; 16]>::into).map(IpAddr::V6);
        let (from, to): (IpAddr, IpAddr) = (address(8)?, address(24)?);
        Self::of_tcp(packet.get(HEADER..)?, from, to, usize::from(number(packet, 4)?))
    }

    /// Reads the header of TCP. `length` is that of header and payload.
    fn of_tcp(header: &[u8], from: IpAddr, to: IpAddr, length: usize) -> Option<Self> {
        let header_len = usize::from(header.get(12)? >> 4) * 4;
        Some(Self {
            from: SocketAddr::new(from, number(header, 0)?),
            to: SocketAddr::new(to, number(header, 2)?),
            flags: *header.get(13)?,
            payload: length.checked_sub(header_len).filter(|_| header_len >= 20)?,
        })
    }

    /// Returns true for the first segment of a client.
    #[must_use]
    pub(crate) fn opens(&self) -> bool {
        self.flags & (SYN | ACK) == SYN
    }

    /// Returns true for the first segment of a server.
    #[must_use]
    pub(crate) fn accepts(&self) -> bool {
        self.flags & (SYN | ACK) == SYN | ACK
    }

    /// Returns true if it acknowledges something.
    #[must_use]
    pub(crate) fn acknowledges(&self) -> bool {
        self.flags & ACK != 0
    }

    /// Returns true if no byte follows it in its direction.
    #[must_use]
    pub(crate) fn ends(&self) -> bool {
        self.flags & (FIN | RST) != 0
    }
}

/// Returns the number in two bytes in network order.
fn number(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::*;

    pub(in crate::compare) const CLIENT: &str = "192.0.2.2:5000";
    pub(in crate::compare) const SERVER: &str = "203.0.113.1:80";

    /// Returns a segment by the letters of its flags: `S`, `A`, `F`, `R`.
    pub(in crate::compare) fn segment(from: &str, to: &str, flags: &str, payload: usize) -> Segment {
        let bit = |letter| match letter {
            'F' => FIN,
            'S' => SYN,
            'R' => RST,
            _ => ACK,
        };
        let flags = flags.chars().map(bit).fold(0, |all, one| all | one);
        Segment { from: from.parse().unwrap(), to: to.parse().unwrap(), flags, payload }
    }

    fn tcp(header_words: u8, flags: u8) -> Vec<u8> {
        let mut header = vec![0; 20];
        header[..4].copy_from_slice(&[0x13, 0x88, 0, 80]);
        header[12] = header_words << 4;
        header[13] = flags;
        header
    }

    fn ipv4(length: u16, protocol: u8, offset: u16, rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0];
        packet.extend(length.to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(offset.to_be_bytes());
        packet.extend([64, protocol, 0, 0, 192, 0, 2, 2, 203, 0, 113, 1]);
        packet.extend(rest);
        packet
    }

    #[test]
    fn a_segment_is_read_in_both_families_from_a_copy_of_its_headers() {
        let read = Segment::read(&ipv4(540, TCP, 0x4000, &tcp(5, ACK))).unwrap();
        assert_eq!(read, segment(CLIENT, SERVER, "A", 500));
        let mut packet = vec![0x60, 0, 0, 0, 0, 32, TCP, 64];
        packet.extend("2001:db8::2".parse::<Ipv6Addr>().unwrap().octets());
        packet.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        packet.extend(tcp(8, SYN));
        let read = Segment::read(&packet).unwrap();
        assert_eq!(read, segment("[2001:db8::2]:5000", "[2001:db8::1]:80", "S", 0));
        assert!(read.opens() && !read.accepts() && !read.acknowledges() && !read.ends());
    }

    #[test]
    fn anything_else_is_no_segment() {
        let (ack, udp) = (tcp(5, ACK), 17);
        for (what, packet) in [
            ("nothing", Vec::new()),
            ("another version", vec![0x15; 60]),
            ("UDP", ipv4(540, udp, 0, &ack)),
            ("a later fragment", ipv4(540, TCP, 0x2010, &ack)),
            ("a copy without the flags", ipv4(540, TCP, 0, &ack[..13])),
            ("a length below that of the headers", ipv4(30, TCP, 0, &ack)),
            ("a header of TCP that is too short", ipv4(540, TCP, 0, &tcp(4, ACK))),
        ] {
            assert_eq!(Segment::read(&packet), None, "{what}");
        }
    }

    proptest! {
        #[test]
        fn no_packet_makes_the_reader_panic(mut packet: Vec<u8>, version in 0..3_u8) {
            if let Some(first) = packet.first_mut().filter(|_| version > 0) {
                *first = (2 + 2 * version) << 4 | (*first & 0xf);
            }
            let _ = Segment::read(&packet);
        }

        #[test]
        fn a_changed_header_has_no_more_payload_than_the_packet_says(at in 0..40_usize, byte: u8) {
            let mut packet = ipv4(540, TCP, 0, &tcp(5, ACK));
            packet[at] = byte;
            if let Some(read) = Segment::read(&packet) {
                prop_assert!(u16::try_from(read.payload).is_ok());
            }
        }
    }
}
