//! TCP connections on the link.
//!
//! A connection begins with a SYN that is not a SYN-ACK. The same SYN again (same addresses, ports and initial sequence
//! number) is a retransmission, which counts as a packet but not as a new connection. A connection that was open when
//! counting began is listed once it carries a packet, without an opening time.

use std::collections::HashMap;
use std::net::SocketAddr;

use etherparse::TcpSlice;
use serde::Serialize;

use super::tls::ClientHello;
use super::{MOST_RECORDS, millis};
use crate::Way;
use crate::time::Moment;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Ends {
    client: SocketAddr,
    server: SocketAddr,
}

#[derive(Clone, Debug)]
struct Connection {
    ends: Ends,
    from: Way,
    /// `None` for a connection that was open before counting began.
    opened: Option<Moment>,
    initial_sequence: u32,
    syn_packets: u32,
    answered: Option<Moment>,
    closed: Option<(Moment, Close)>,
    hello: ClientHello,
    bytes_up: u64,
    bytes_down: u64,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Close {
    /// With a FIN.
    Fin,
    /// With a RST.
    Reset,
}

/// All connections since counting began.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    latest: HashMap<Ends, usize>,
    records: Vec<Connection>,
    opened: u64,
    syn_packets: u64,
}

/// The relevant parts of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Its direction.
    pub way: Way,
    /// Its source.
    pub source: SocketAddr,
    /// Its destination.
    pub destination: SocketAddr,
    /// Its header and payload.
    pub tcp: &'a TcpSlice<'a>,
    /// Length of the whole IP packet.
    pub packet_bytes: usize,
}

impl Connections {
    /// Records one segment.
    pub fn see(&mut self, now: Moment, segment: Segment<'_>) {
        let tcp = segment.tcp;
        let forward = Ends { client: segment.source, server: segment.destination };
        let backward = Ends { client: segment.destination, server: segment.source };
        if tcp.syn() && !tcp.ack() {
            self.see_syn(now, segment.way, forward, tcp.sequence_number());
        }
        let (index, from_client) = match (self.latest.get(&forward), self.latest.get(&backward)) {
            (Some(index), _) => (*index, true),
            (None, Some(index)) => (*index, false),
            (None, None) => return,
        };
        let Some(connection) = self.records.get_mut(index) else { return };
        match segment.way {
            Way::Up => connection.bytes_up += segment.packet_bytes as u64,
            Way::Down => connection.bytes_down += segment.packet_bytes as u64,
        }
        if from_client && !tcp.syn() {
            let offset = tcp.sequence_number().wrapping_sub(connection.initial_sequence).wrapping_sub(1);
            connection.hello.see(offset, tcp.payload());
        }
        if tcp.syn() && tcp.ack() {
            connection.answered.get_or_insert(now);
        }
        if tcp.rst() {
            connection.closed.get_or_insert((now, Close::Reset));
        } else if tcp.fin() {
            connection.closed.get_or_insert((now, Close::Fin));
        }
    }

    fn see_syn(&mut self, now: Moment, from: Way, ends: Ends, initial_sequence: u32) {
        self.syn_packets += 1;
        if let Some(index) = self.latest.get(&ends)
            && let Some(known) = self.records.get_mut(*index)
            && known.initial_sequence == initial_sequence
        {
            known.syn_packets += 1;
            return;
        }
        self.opened += 1;
        if self.records.len() >= MOST_RECORDS {
            return;
        }
        self.latest.insert(ends, self.records.len());
        self.records.push(Connection {
            ends,
            from,
            opened: Some(now),
            initial_sequence,
            syn_packets: 1,
            answered: None,
            closed: None,
            hello: ClientHello::default(),
            bytes_up: 0,
            bytes_down: 0,
        });
    }

    /// Restarts the counters. Connections that are still open stay known, with all their counters at zero.
    pub fn restart(&mut self) {
        self.records.retain(|connection| connection.closed.is_none());
        for connection in &mut self.records {
            connection.opened = None;
            connection.syn_packets = 0;
            connection.bytes_up = 0;
            connection.bytes_down = 0;
        }
        self.latest = self.records.iter().enumerate().map(|(index, connection)| (connection.ends, index)).collect();
        self.opened = 0;
        self.syn_packets = 0;
    }

    /// Returns the report, with times relative to `since`.
    pub fn report(&self, since: Moment) -> Report {
        let list = self
            .records
            .iter()
            .filter(|connection| connection.opened.is_some() || connection.bytes_up + connection.bytes_down > 0)
            .map(|connection| ConnectionReport {
                client: connection.ends.client,
                server: connection.ends.server,
                server_name: connection.hello.server_name().map(str::to_owned),
                way: connection.from,
                opened_ms: connection.opened.map(|moment| millis(moment, since)),
                answered_ms: connection.answered.map(|moment| millis(moment, since)),
                closed_ms: connection.closed.map(|(moment, _)| millis(moment, since)),
                closed_by: connection.closed.map(|(_, close)| close),
                syn_packets: connection.syn_packets,
                bytes_up: connection.bytes_up,
                bytes_down: connection.bytes_down,
            })
            .collect();
        Report { connections: self.opened, syn_packets: self.syn_packets, list }
    }
}

/// The report on TCP.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Connections opened (retransmitted SYNs do not count).
    pub connections: u64,
    /// SYN packets, retransmissions included.
    pub syn_packets: u64,
    /// The first [`MOST_RECORDS`] connections, in the order of their opening.
    pub list: Vec<ConnectionReport>,
}

/// One connection. Times are those at which the packet was offered to the link.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionReport {
    /// The sender of the SYN.
    pub client: SocketAddr,
    /// The receiver of the SYN.
    pub server: SocketAddr,
    /// The name in the TLS `ClientHello`, if there was one.
    pub server_name: Option<String>,
    /// The direction of the SYN.
    pub way: Way,
    /// The first SYN; `None` if the connection was open before counting began.
    pub opened_ms: Option<f64>,
    /// The first SYN-ACK.
    pub answered_ms: Option<f64>,
    /// The first FIN or RST.
    pub closed_ms: Option<f64>,
    /// The kind of that packet.
    pub closed_by: Option<Close>,
    /// SYN packets sent for it.
    pub syn_packets: u32,
    /// Bytes of its IP packets on the uplink.
    pub bytes_up: u64,
    /// Bytes of its IP packets on the downlink.
    pub bytes_down: u64,
}
