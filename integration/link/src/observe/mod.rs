//! Observes the packets on the link itself, where no cache, proxy or browser hides any of them.
//!
//! The tap reads packets when they are offered, before any is dropped. Observation is passive: the link also carries a
//! packet that the tap cannot read, and counts it as `other` or as unread.

pub mod dns;
pub mod tcp;
pub mod tls;
pub mod udp;

use std::net::{IpAddr, SocketAddr};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use serde::Serialize;

use crate::Way;
use crate::time::Moment;

/// The most records of each kind. Further ones are only counted, so that a flood cannot exhaust the memory.
pub const MOST_RECORDS: usize = 100_000;

/// Observes packets as they are offered to the link.
#[derive(Clone, Debug, Default)]
pub struct Tap {
    tcp: tcp::Connections,
    dns: dns::Queries,
    udp: udp::Flows,
    packets: Protocols,
}

/// Packets of both directions by protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Protocols {
    /// TCP.
    pub tcp: u64,
    /// UDP, including DNS.
    pub udp: u64,
    /// `ICMP` and `ICMPv6`.
    pub icmp: u64,
    /// All other packets, including later fragments and malformed ones.
    pub other: u64,
}

impl Tap {
    /// Reads one packet.
    pub fn see(&mut self, now: Moment, way: Way, packet: &[u8]) {
        let sliced = SlicedPacket::from_ip(packet).ok();
        let addresses = sliced.as_ref().and_then(|sliced| addresses(sliced.net.as_ref()?));
        let transport = sliced.as_ref().and_then(|sliced| sliced.transport.as_ref());
        match (addresses, transport) {
            (Some((source, destination)), Some(TransportSlice::Tcp(segment))) => {
                self.packets.tcp += 1;
                let segment = tcp::Segment {
                    way,
                    source: SocketAddr::new(source, segment.source_port()),
                    destination: SocketAddr::new(destination, segment.destination_port()),
                    tcp: segment,
                    packet_bytes: packet.len(),
                };
                self.tcp.see(now, segment);
            }
            (Some((source, destination)), Some(TransportSlice::Udp(datagram))) => {
                self.packets.udp += 1;
                let source = SocketAddr::new(source, datagram.source_port());
                let destination = SocketAddr::new(destination, datagram.destination_port());
                if source.port() == dns::PORT || destination.port() == dns::PORT {
                    self.dns.see(now, way, source, destination, datagram.payload());
                } else {
                    self.udp.see(now, way, source, destination, packet.len());
                }
            }
            (Some(_), Some(TransportSlice::Icmpv4(_) | TransportSlice::Icmpv6(_))) => self.packets.icmp += 1,
            _ => self.packets.other += 1,
        }
    }

    /// Restarts the counters.
    pub fn restart(&mut self) {
        let mut tcp = std::mem::take(&mut self.tcp);
        tcp.restart();
        *self = Self { tcp, ..Self::default() };
    }

    /// Returns the observations for the report. Times are relative to `since`.
    pub fn report(&self, since: Moment) -> Observed {
        Observed {
            packets: self.packets,
            tcp: self.tcp.report(since),
            dns: self.dns.report(since),
            udp: self.udp.report(since),
        }
    }
}

fn addresses(net: &NetSlice<'_>) -> Option<(IpAddr, IpAddr)> {
    match net {
        NetSlice::Ipv4(ip) => Some((ip.header().source_addr().into(), ip.header().destination_addr().into())),
        NetSlice::Ipv6(ip) => Some((ip.header().source_addr().into(), ip.header().destination_addr().into())),
        NetSlice::Arp(_) => None,
    }
}

fn millis(moment: Moment, since: Moment) -> f64 {
    moment.since(since).as_secs_f64() * 1e3
}

/// The observations on the link.
#[derive(Clone, Debug, Serialize)]
pub struct Observed {
    /// Packets by protocol.
    pub packets: Protocols,
    /// TCP connections.
    pub tcp: tcp::Report,
    /// DNS over UDP.
    pub dns: dns::Report,
    /// Other UDP.
    pub udp: udp::Report,
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    const A: [u8; 4] = [192, 0, 2, 1];
    const B: [u8; 4] = [198, 51, 100, 7];

    enum Flags {
        Syn,
        SynAck,
        Ack,
        Fin,
    }

    fn segment(from: ([u8; 4], u16), to: ([u8; 4], u16), flags: &Flags, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let builder = PacketBuilder::ipv4(from.0, to.0, 64).tcp(from.1, to.1, sequence, 64_000);
        let builder = match flags {
            Flags::Syn => builder.syn(),
            Flags::SynAck => builder.syn().ack(1),
            Flags::Ack => builder.ack(1),
            Flags::Fin => builder.fin().ack(1),
        };
        let mut packet = Vec::new();
        builder.write(&mut packet, payload).unwrap();
        packet
    }

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_connection_is_followed_from_syn_to_fin_with_its_bytes() {
        let (client, server) = ((A, 40_000), (B, 443));
        let mut tap = Tap::default();
        tap.see(at(5), Way::Up, &segment(client, server, &Flags::Syn, 99, b""));
        tap.see(at(6), Way::Up, &segment(client, server, &Flags::Syn, 99, b""));
        tap.see(at(7), Way::Down, &segment(server, client, &Flags::SynAck, 5, b""));
        tap.see(at(8), Way::Up, &segment(client, server, &Flags::Ack, 100, b"hello"));
        tap.see(at(9), Way::Down, &segment(server, client, &Flags::Fin, 6, b""));
        let report = tap.report(at(1)).tcp;
        assert_eq!((report.connections, report.syn_packets, report.list.len()), (1, 2, 1));
        let connection = &report.list[0];
        assert_eq!(connection.server, "198.51.100.7:443".parse().unwrap());
        assert_eq!(connection.way, Way::Up);
        assert_eq!((connection.opened_ms, connection.answered_ms), (Some(4.0), Some(6.0)));
        assert_eq!((connection.closed_ms, connection.closed_by), (Some(8.0), Some(tcp::Close::Fin)));
        assert_eq!((connection.bytes_up, connection.bytes_down), (40 + 40 + 45, 40 + 40));
    }

    #[test]
    fn the_same_ports_with_another_initial_sequence_number_are_another_connection() {
        let (client, server) = ((A, 40_000), (B, 80));
        let mut tap = Tap::default();
        tap.see(at(1), Way::Up, &segment(client, server, &Flags::Syn, 99, b""));
        tap.see(at(2), Way::Up, &segment(client, server, &Flags::Syn, 100_000, b""));
        assert_eq!(tap.report(at(0)).tcp.connections, 2);
    }

    #[test]
    fn after_a_restart_open_connections_are_listed_only_if_they_are_used_and_closed_ones_are_gone() {
        let server = (B, 80);
        let mut tap = Tap::default();
        for port in [1001, 1002, 1003] {
            tap.see(at(1), Way::Up, &segment((A, port), server, &Flags::Syn, 9, b""));
        }
        tap.see(at(2), Way::Up, &segment((A, 1003), server, &Flags::Fin, 10, b""));
        tap.restart();
        tap.see(at(3), Way::Down, &segment(server, (A, 1001), &Flags::Ack, 10, b"data"));
        let report = tap.report(at(3)).tcp;
        assert_eq!((report.connections, report.syn_packets, report.list.len()), (0, 0, 1));
        assert_eq!(report.list[0].client.port(), 1001);
        assert_eq!((report.list[0].opened_ms, report.list[0].bytes_down), (None, 44));
    }

    #[test]
    fn a_udp_flow_has_the_first_sender_as_its_client() {
        let datagram = |from: ([u8; 4], u16), to: ([u8; 4], u16)| {
            let mut packet = Vec::new();
            PacketBuilder::ipv4(from.0, to.0, 64).udp(from.1, to.1).write(&mut packet, b"quic").unwrap();
            packet
        };
        let mut tap = Tap::default();
        tap.see(at(1), Way::Up, &datagram((A, 5000), (B, 443)));
        tap.see(at(2), Way::Down, &datagram((B, 443), (A, 5000)));
        let observed = tap.report(at(0));
        assert_eq!((observed.udp.flows, observed.dns.queries, observed.packets.udp), (1, 0, 2));
        assert_eq!((observed.udp.list[0].server.port(), observed.udp.list[0].bytes_down), (443, 32));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_harm_it(
            head in proptest::sample::select(vec![0x45u8, 0x46, 0x60]),
            protocol in proptest::sample::select(vec![6u8, 17, 1, 44]),
            mut packet in proptest::collection::vec(proptest::prelude::any::<u8>(), 20..200),
            port in proptest::sample::select(vec![53u8, 80]),
        ) {
            packet[0] = head;
            packet[9] = protocol;
            if let Some(destination) = packet.get_mut(22..24) {
                destination.copy_from_slice(&[0, port]);
            }
            let length = u16::try_from(packet.len()).unwrap();
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            packet[6..8].fill(0);
            let mut tap = Tap::default();
            tap.see(at(0), Way::Up, &packet);
            tap.see(at(1), Way::Down, &packet);
            let packets = tap.report(at(0)).packets;
            proptest::prop_assert_eq!(packets.tcp + packets.udp + packets.icmp + packets.other, 2);
        }
    }

    #[test]
    fn frames_that_are_not_ip_are_counted_and_harm_nothing() {
        let mut tap = Tap::default();
        for junk in [&b""[..], b"\x45", &[0x60; 10], &[0; 1500]] {
            tap.see(at(0), Way::Up, junk);
        }
        assert_eq!(tap.report(at(0)).packets, Protocols { other: 4, ..Protocols::default() });
    }
}
