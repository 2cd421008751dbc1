//! UDP flows other than DNS seen on the link: QUIC above all, which is the TCP of UDP.

use std::collections::HashMap;
use std::net::SocketAddr;

use serde::Serialize;

use super::{MOST_RECORDS, millis};
use crate::Way;
use crate::time::Moment;

#[derive(Clone, Debug)]
struct Flow {
    client: SocketAddr,
    server: SocketAddr,
    way: Way,
    began: Moment,
    bytes_up: u64,
    bytes_down: u64,
}

/// All flows since counting began. Who sends first counts as the client.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    latest: HashMap<(SocketAddr, SocketAddr), usize>,
    records: Vec<Flow>,
    began: u64,
}

impl Flows {
    /// Looks at one datagram; `packet_bytes` is the length of the whole IP packet.
    pub fn see(&mut self, now: Moment, way: Way, source: SocketAddr, destination: SocketAddr, packet_bytes: usize) {
        let known = self.latest.get(&(source, destination)).or_else(|| self.latest.get(&(destination, source)));
        let index = if let Some(index) = known {
            *index
        } else {
            self.began += 1;
            if self.records.len() >= MOST_RECORDS {
                return;
            }
            self.latest.insert((source, destination), self.records.len());
            self.records.push(Flow {
                client: source,
                server: destination,
                way,
                began: now,
                bytes_up: 0,
                bytes_down: 0,
            });
            self.records.len() - 1
        };
        let Some(flow) = self.records.get_mut(index) else { return };
        match way {
            Way::Up => flow.bytes_up += packet_bytes as u64,
            Way::Down => flow.bytes_down += packet_bytes as u64,
        }
    }

    /// The report, with times relative to `since`.
    pub fn report(&self, since: Moment) -> Report {
        let list = self
            .records
            .iter()
            .map(|flow| FlowReport {
                client: flow.client,
                server: flow.server,
                way: flow.way,
                began_ms: millis(flow.began, since),
                bytes_up: flow.bytes_up,
                bytes_down: flow.bytes_down,
            })
            .collect();
        Report { flows: self.began, list }
    }
}

/// UDP other than DNS on the link.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Flows: pairs of address and port.
    pub flows: u64,
    /// The first [`MOST_RECORDS`] of them.
    pub list: Vec<FlowReport>,
}

/// One flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowReport {
    /// Who sent first.
    pub client: SocketAddr,
    /// To whom.
    pub server: SocketAddr,
    /// The direction of the first datagram.
    pub way: Way,
    /// When that was offered to the link.
    pub began_ms: f64,
    /// Bytes of its IP packets in direction up.
    pub bytes_up: u64,
    /// Bytes of its IP packets in direction down.
    pub bytes_down: u64,
}
