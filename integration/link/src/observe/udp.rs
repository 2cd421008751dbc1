//! UDP flows on the link other than DNS. Most of them are QUIC connections.

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

/// All flows since counting began. The first sender counts as the client.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    latest: HashMap<(SocketAddr, SocketAddr), usize>,
    records: Vec<Flow>,
    began: u64,
}

impl Flows {
    /// Records one datagram. `packet_bytes` is the length of the whole IP packet.
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

    /// Returns the report, with times relative to `since`.
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

/// The report on UDP other than DNS.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Number of flows: pairs of addresses with their ports.
    pub flows: u64,
    /// The first [`MOST_RECORDS`] flows.
    pub list: Vec<FlowReport>,
}

/// One flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowReport {
    /// The first sender.
    pub client: SocketAddr,
    /// The receiver of the first datagram.
    pub server: SocketAddr,
    /// The direction of the first datagram.
    pub way: Way,
    /// The time at which the first datagram was offered to the link.
    pub began_ms: f64,
    /// Bytes of its IP packets on the uplink.
    pub bytes_up: u64,
    /// Bytes of its IP packets on the downlink.
    pub bytes_down: u64,
}
