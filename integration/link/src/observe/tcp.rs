//! TCP connections seen on the link.
//!
//! A connection begins with a SYN that is not a SYN-ACK; the same SYN again (same addresses, ports and initial sequence
//! number) is a retransmission, counted but not a new connection.

use std::collections::HashMap;
use std::net::SocketAddr;

use etherparse::TcpSlice;
use serde::Serialize;

use super::MOST_RECORDS;
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
    opened: Moment,
    initial_sequence: u32,
    syn_packets: u32,
    answered: Option<Moment>,
    closed: Option<(Moment, Close)>,
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

impl Connections {
    /// Looks at one segment; `packet_bytes` is the length of the whole IP packet.
    pub fn see(
        &mut self,
        now: Moment,
        way: Way,
        source: SocketAddr,
        destination: SocketAddr,
        segment: &TcpSlice<'_>,
        packet_bytes: usize,
    ) {
        let forward = Ends { client: source, server: destination };
        if segment.syn() && !segment.ack() {
            self.see_syn(now, way, forward, segment.sequence_number());
        }
        let backward = Ends { client: destination, server: source };
        let Some(index) = self.latest.get(&forward).or_else(|| self.latest.get(&backward)) else { return };
        let Some(connection) = self.records.get_mut(*index) else { return };
        match way {
            Way::Up => connection.bytes_up += packet_bytes as u64,
            Way::Down => connection.bytes_down += packet_bytes as u64,
        }
        if segment.syn() && segment.ack() {
            connection.answered.get_or_insert(now);
        }
        if segment.rst() {
            connection.closed.get_or_insert((now, Close::Reset));
        } else if segment.fin() {
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
            opened: now,
            initial_sequence,
            syn_packets: 1,
            answered: None,
            closed: None,
            bytes_up: 0,
            bytes_down: 0,
        });
    }

    /// The report, with times relative to `since`.
    pub fn report(&self, since: Moment) -> Report {
        let millis = |moment: Moment| moment.since(since).as_secs_f64() * 1e3;
        Report {
            connections: self.opened,
            syn_packets: self.syn_packets,
            list: self
                .records
                .iter()
                .map(|connection| ConnectionReport {
                    client: connection.ends.client,
                    server: connection.ends.server,
                    from: connection.from,
                    opened_ms: millis(connection.opened),
                    answered_ms: connection.answered.map(millis),
                    closed_ms: connection.closed.map(|(moment, _)| millis(moment)),
                    closed_by: connection.closed.map(|(_, close)| close),
                    syn_packets: connection.syn_packets,
                    bytes_up: connection.bytes_up,
                    bytes_down: connection.bytes_down,
                })
                .collect(),
        }
    }
}

/// TCP on the link.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Connections opened (retransmitted SYNs do not count).
    pub connections: u64,
    /// SYN packets, retransmissions included.
    pub syn_packets: u64,
    /// The first [`MOST_RECORDS`] connections in the order they were opened.
    pub list: Vec<ConnectionReport>,
}

/// One connection.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionReport {
    /// Who sent the SYN.
    pub client: SocketAddr,
    /// To whom.
    pub server: SocketAddr,
    /// The direction the SYN travelled in.
    pub from: Way,
    /// When the first SYN was offered to the link.
    pub opened_ms: f64,
    /// When the SYN-ACK was offered to the link.
    pub answered_ms: Option<f64>,
    /// When the first FIN or RST was offered.
    pub closed_ms: Option<f64>,
    /// Which of the two it was.
    pub closed_by: Option<Close>,
    /// SYN packets sent for it.
    pub syn_packets: u32,
    /// Bytes of its IP packets offered in direction up.
    pub bytes_up: u64,
    /// Bytes of its IP packets offered in direction down.
    pub bytes_down: u64,
}
