//! What crosses the link, seen from the link: the one place where nothing can be hidden by a cache, a proxy or a browser.
//!
//! Observation is passive: a packet that cannot be read is carried all the same, and counted as unread.

pub mod dns;
pub mod tcp;

use std::net::{IpAddr, SocketAddr};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use serde::Serialize;

use crate::Way;
use crate::time::Moment;

/// Records kept of each kind. Beyond it only numbers are kept, so that a flood cannot eat the memory.
pub const MOST_RECORDS: usize = 100_000;

/// Watches packets as they are offered to the link, before any of them is dropped.
#[derive(Clone, Debug, Default)]
pub struct Tap {
    tcp: tcp::Connections,
    dns: dns::Queries,
    protocols: Protocols,
}

/// Packets and bytes by protocol, both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Protocols {
    /// TCP packets.
    pub tcp_packets: u64,
    /// UDP packets, DNS and QUIC included.
    pub udp_packets: u64,
    /// UDP packets from or to port 443: QUIC.
    pub quic_packets: u64,
    /// `ICMP` and `ICMPv6` packets.
    pub icmp_packets: u64,
    /// Anything else, fragments and malformed packets included.
    pub other_packets: u64,
}

impl Tap {
    /// Looks at one packet.
    pub fn see(&mut self, now: Moment, way: Way, packet: &[u8]) {
        let Ok(sliced) = SlicedPacket::from_ip(packet) else {
            self.protocols.other_packets += 1;
            return;
        };
        let (source, destination) = match &sliced.net {
            Some(NetSlice::Ipv4(ip)) => {
                (IpAddr::V4(ip.header().source_addr()), IpAddr::V4(ip.header().destination_addr()))
            }
            Some(NetSlice::Ipv6(ip)) => {
                (IpAddr::V6(ip.header().source_addr()), IpAddr::V6(ip.header().destination_addr()))
            }
            _ => {
                self.protocols.other_packets += 1;
                return;
            }
        };
        match &sliced.transport {
            Some(TransportSlice::Tcp(segment)) => {
                self.protocols.tcp_packets += 1;
                let source = SocketAddr::new(source, segment.source_port());
                let destination = SocketAddr::new(destination, segment.destination_port());
                self.tcp.see(now, way, source, destination, segment, packet.len());
            }
            Some(TransportSlice::Udp(datagram)) => {
                self.protocols.udp_packets += 1;
                let source = SocketAddr::new(source, datagram.source_port());
                let destination = SocketAddr::new(destination, datagram.destination_port());
                if [source.port(), destination.port()].contains(&443) {
                    self.protocols.quic_packets += 1;
                }
                self.dns.see(now, way, source, destination, datagram.payload());
            }
            Some(TransportSlice::Icmpv4(_) | TransportSlice::Icmpv6(_)) => self.protocols.icmp_packets += 1,
            _ => self.protocols.other_packets += 1,
        }
    }

    /// What was seen, for the report. Times are relative to `since`.
    pub fn report(&self, since: Moment) -> Observed {
        Observed { protocols: self.protocols, tcp: self.tcp.report(since), dns: self.dns.report(since) }
    }
}

/// What was seen on the link.
#[derive(Clone, Debug, Serialize)]
pub struct Observed {
    /// Packets by protocol.
    pub protocols: Protocols,
    /// TCP connections.
    pub tcp: tcp::Report,
    /// DNS over UDP.
    pub dns: dns::Report,
}
