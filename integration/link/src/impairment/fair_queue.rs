//! A fair queue in front of the transmitter, as of a router that runs `fq_codel` or `cake` and owns the queue of its link.
//!
//! Each flow has a queue of its own, and flows take turns by bytes (deficit round robin). A queue without room drops the
//! last packets of the flow that holds most. There is no `CoDel`: drops come from the limit alone.
//!
//! M. Shreedhar and G. Varghese, "Efficient Fair Queueing using Deficit Round Robin", 1995; RFC 8290.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::levels::QueueLevels;
use crate::Way;

/// A turn is worth this many bytes: a full Ethernet frame, as of `fq_codel`.
const QUANTUM_BYTES: usize = 1514;

/// The packets that make one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FairBy {
    /// The same addresses, protocol and ports.
    Flow,
    /// The same client, whatever it does: the address at end A.
    Client,
}

impl FairBy {
    /// Returns the key of the flow to which an IP packet belongs. Packets that are none are one flow.
    pub fn key(self, way: Way, packet: &[u8]) -> Vec<u8> {
        let (source, destination, protocol, ports) = match packet.first().map(|byte| byte >> 4) {
            Some(4) => {
                let header = packet.first().map_or(0, |byte| usize::from(byte & 0xf) * 4);
                (packet.get(12..16), packet.get(16..20), packet.get(9..10), packet.get(header..header + 4))
            }
            Some(6) => (packet.get(8..24), packet.get(24..40), packet.get(6..7), packet.get(40..44)),
            _ => (None, None, None, None),
        };
        let client = match way {
            Way::Up => source,
            Way::Down => destination,
        };
        let fields = match self {
            Self::Client => vec![client],
            Self::Flow if protocol.is_some_and(has_ports) => vec![source, destination, protocol, ports],
            Self::Flow => vec![source, destination, protocol],
        };
        fields.into_iter().flatten().flatten().copied().collect()
    }
}

/// TCP and UDP have ports.
fn has_ports(protocol: &[u8]) -> bool {
    matches!(protocol, [6 | 17])
}

#[derive(Clone, Debug)]
struct Flow<T> {
    waiting: VecDeque<(usize, T)>,
    held_bytes: usize,
    credit_bytes: usize,
}

/// A queue with a limit in bytes whose flows take turns.
#[derive(Clone, Debug)]
pub struct FairQueue<T> {
    flows: BTreeMap<Vec<u8>, Flow<T>>,
    /// The flows that have packets, in the order of their turns.
    turns: VecDeque<Vec<u8>>,
    /// The packet in transmission. It counts as held.
    head: Option<(usize, T)>,
    levels: QueueLevels,
}

impl<T> FairQueue<T> {
    /// Returns an empty queue that holds at most `limit_bytes`, including the packet in transmission.
    pub fn new(limit_bytes: usize) -> Self {
        Self { flows: BTreeMap::new(), turns: VecDeque::new(), head: None, levels: QueueLevels::new(limit_bytes) }
    }

    /// Appends an item to its flow. Returns the lengths of the packets that are dropped for it, which may be its own.
    pub fn push(&mut self, key: Vec<u8>, length_bytes: usize, item: T) -> Vec<usize> {
        let flow = self.flows.entry(key.clone()).or_insert_with(|| {
            self.turns.push_back(key);
            Flow { waiting: VecDeque::new(), held_bytes: 0, credit_bytes: QUANTUM_BYTES }
        });
        flow.waiting.push_back((length_bytes, item));
        flow.held_bytes += length_bytes;
        self.levels.now_bytes += length_bytes;
        let mut dropped = Vec::new();
        while self.levels.now_bytes > self.levels.limit_bytes
            && let Some(length_bytes) = self.drop_of_the_largest()
        {
            dropped.push(length_bytes);
        }
        self.levels.mark();
        dropped
    }

    fn drop_of_the_largest(&mut self) -> Option<usize> {
        let (key, flow) = self.flows.iter_mut().max_by_key(|(_, flow)| flow.held_bytes)?;
        let (length_bytes, _) = flow.waiting.pop_back()?;
        flow.held_bytes -= length_bytes;
        self.levels.leave(length_bytes);
        if flow.waiting.is_empty() {
            let key = key.clone();
            self.flows.remove(&key);
            self.turns.retain(|turn| *turn != key);
        }
        Some(length_bytes)
    }

    /// Returns the length in bytes of the packet whose turn it is. It stays the same until [`Self::pop`].
    pub fn head_bytes(&mut self) -> Option<usize> {
        while self.head.is_none() {
            let key = self.turns.front()?.clone();
            let Some(flow) = self.flows.get_mut(&key) else {
                self.turns.pop_front();
                continue;
            };
            match flow.waiting.front() {
                Some((length_bytes, _)) if *length_bytes <= flow.credit_bytes => {
                    flow.credit_bytes -= length_bytes;
                    flow.held_bytes -= length_bytes;
                    self.head = flow.waiting.pop_front();
                    if flow.waiting.is_empty() {
                        self.flows.remove(&key);
                        self.turns.pop_front();
                    }
                }
                Some(_) => {
                    flow.credit_bytes += QUANTUM_BYTES;
                    self.turns.rotate_left(1);
                }
                None => {
                    self.flows.remove(&key);
                    self.turns.pop_front();
                }
            }
        }
        self.head.as_ref().map(|(length_bytes, _)| *length_bytes)
    }

    /// Removes the packet whose turn it is and returns it.
    pub fn pop(&mut self) -> Option<T> {
        self.head_bytes()?;
        let (length_bytes, item) = self.head.take()?;
        self.levels.leave(length_bytes);
        Some(item)
    }

    /// Returns the bytes in the queue, and the most since the start or since [`Self::forget_highest`].
    pub fn levels(&self) -> QueueLevels {
        self.levels
    }

    /// Restarts the high-water mark at the current level.
    pub fn forget_highest(&mut self) {
        self.levels.forget_highest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent<const COUNT: usize>(queue: &mut FairQueue<&'static str>) -> [Option<&'static str>; COUNT] {
        std::array::from_fn(|_| queue.pop())
    }

    fn ipv4(source: u8, destination: u8, protocol: u8, port: u8) -> Vec<u8> {
        let mut packet = vec![0; 28];
        packet[0] = 0x45;
        packet[9] = protocol;
        packet[15] = source;
        packet[19] = destination;
        packet[23] = port;
        packet
    }

    #[test]
    fn flows_take_turns_and_each_keeps_its_order() {
        let mut queue = FairQueue::new(100_000);
        for name in ["a1", "a2", "a3"] {
            assert!(queue.push(vec![1], 1500, name).is_empty());
        }
        assert!(queue.push(vec![2], 1500, "b1").is_empty());
        assert_eq!(sent(&mut queue), [Some("a1"), Some("b1"), Some("a2"), Some("a3"), None]);
        assert_eq!(queue.levels().now_bytes, 0);
    }

    #[test]
    fn a_turn_is_worth_bytes_and_not_packets() {
        let mut queue = FairQueue::new(1_000_000);
        for _ in 0..200 {
            queue.push(vec![1], 1500, "large");
        }
        for _ in 0..2000 {
            queue.push(vec![2], 100, "small");
        }
        let first: Vec<_> = (0..1600).filter_map(|_| queue.pop()).collect();
        let large = first.iter().filter(|name| **name == "large").count();
        assert!((98..=102).contains(&large), "{large} of 1500 bytes beside {} of 100", first.len() - large);
    }

    #[test]
    fn the_packet_in_transmission_does_not_change() {
        let mut queue = FairQueue::new(100_000);
        queue.push(vec![2], 900, "first");
        assert_eq!(queue.head_bytes(), Some(900));
        queue.push(vec![1], 100, "second");
        assert_eq!(queue.head_bytes(), Some(900));
        assert_eq!(sent(&mut queue), [Some("first"), Some("second")]);
    }

    #[test]
    fn a_full_queue_drops_the_last_packets_of_the_flow_that_holds_most() {
        let mut queue = FairQueue::new(4000);
        for name in ["a1", "a2"] {
            assert!(queue.push(vec![1], 1500, name).is_empty());
        }
        assert_eq!(queue.push(vec![2], 1200, "b1"), [1500]);
        assert_eq!(queue.push(vec![1], 1500, "a3"), [1500], "it may be the packet itself");
        assert_eq!(sent(&mut queue), [Some("a1"), Some("b1"), None]);
        assert_eq!(queue.levels().highest_bytes, 3000);
    }

    #[test]
    fn a_flow_has_the_same_addresses_protocol_and_ports() {
        let key = |source, destination, protocol, port| {
            FairBy::Flow.key(Way::Down, &ipv4(source, destination, protocol, port))
        };
        assert_eq!(key(1, 2, 6, 80), key(1, 2, 6, 80));
        for other in [key(3, 2, 6, 80), key(1, 3, 6, 80), key(1, 2, 17, 80), key(1, 2, 6, 81)] {
            assert_ne!(key(1, 2, 6, 80), other);
        }
        assert_eq!(key(1, 2, 1, 80), key(1, 2, 1, 81), "ICMP has no ports");
    }

    #[test]
    fn a_client_is_the_address_at_end_a() {
        let key = |way, source, destination| FairBy::Client.key(way, &ipv4(source, destination, 6, 80));
        assert_eq!(key(Way::Up, 1, 2), key(Way::Up, 1, 3));
        assert_eq!(key(Way::Down, 1, 2), key(Way::Down, 3, 2));
        assert_eq!(key(Way::Up, 1, 2), key(Way::Down, 2, 1));
        assert_ne!(key(Way::Up, 1, 2), key(Way::Up, 3, 2));
    }
}
