//! The sizes of packets on a link whose largest packet the operator knows (`link.mtu`).
//!
//! Tunnels such as GRE carry smaller packets than the networks at their ends. If something beside them drops
//! the ICMP messages that say so, larger packets vanish (RFC 2923 section 2.1). A smaller segment size needs no message.

use super::capacity::Reasoned;

/// The headers before a segment: IPv6 and TCP. Those of IPv4 are shorter, so a segment fits in both families.
const TCP_HEADERS: u32 = 40 + 20;
/// The headers before a packet of QUIC: IPv6 and UDP.
const QUIC_HEADERS: u32 = 40 + 8;

/// The sizes of packets on the link, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packets {
    /// The segment size of TCP, with its options (`TCP_MAXSEG`). It holds in both directions.
    pub segment: Reasoned<u32>,
    /// The packet size of QUIC.
    pub datagram: Reasoned<u32>,
}

impl Packets {
    pub(super) fn of(mtu: u32) -> Self {
        let less = |headers: u32, names: &str| Reasoned {
            value: mtu.saturating_sub(headers),
            reason: format!("link.mtu {mtu} - {headers} for the headers of {names}"),
        };
        Self { segment: less(TCP_HEADERS, "IPv6 and TCP"), datagram: less(QUIC_HEADERS, "IPv6 and UDP") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_fits_in_a_packet_of_either_family() {
        let packets = Packets::of(1280);
        assert_eq!((packets.segment.value, packets.datagram.value), (1220, 1232));
        assert_eq!(packets.segment.reason, "link.mtu 1280 - 60 for the headers of IPv6 and TCP");
    }
}
