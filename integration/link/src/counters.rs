//! What is counted in one direction.

use std::time::Duration;

use serde::Serialize;

use crate::spread::Spread;

/// Packets and their bytes (whole IP packets).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Number of packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Tally {
    /// Counts one packet.
    pub fn add(&mut self, length_bytes: usize) {
        self.packets += 1;
        self.bytes += length_bytes as u64;
    }

    /// Takes one packet back.
    pub fn remove(&mut self, length_bytes: usize) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(length_bytes as u64);
    }
}

/// Why a packet never arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// Longer than the link's MTU.
    TooLong,
    /// It did not fit into the queue.
    QueueFull,
    /// Lost on the air on its own.
    RandomLoss,
    /// Lost on the air in a burst.
    BurstLoss,
    /// Sent while the link was away.
    Outage,
    /// The receiving kernel would not take it (device down, malformed packet).
    DeviceRefused,
}

/// Drops, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// [`DropCause::TooLong`]
    pub too_long: Tally,
    /// [`DropCause::QueueFull`]
    pub queue_full: Tally,
    /// [`DropCause::RandomLoss`]
    pub random_loss: Tally,
    /// [`DropCause::BurstLoss`]
    pub burst_loss: Tally,
    /// [`DropCause::Outage`]
    pub outage: Tally,
    /// [`DropCause::DeviceRefused`]
    pub device_refused: Tally,
}

/// The counters of one direction.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Handed to the link.
    pub offered: Tally,
    /// Sent by the transmitter, lost or not: what used the link's capacity.
    pub carried: Tally,
    /// Taken by the receiving end.
    pub delivered: Tally,
    /// Not arrived.
    pub dropped: Drops,
    /// Packets that arrived twice (each counts twice as delivered).
    pub duplicated_packets: u64,
    /// Packets held back so that later ones overtake them.
    pub held_back_packets: u64,
    /// Time the transmitter was sending.
    pub busy: Duration,
    /// Time between being offered and the start of transmission.
    pub queueing: Spread,
    /// Time between being offered and being handed to the receiving kernel.
    pub one_way_delay: Spread,
    /// How much later than due packets were handed over: the instrument's own error.
    pub lateness: Spread,
}

impl Counters {
    /// Counts a dropped packet.
    pub fn drop_one(&mut self, cause: DropCause, length_bytes: usize) {
        let tally = match cause {
            DropCause::TooLong => &mut self.dropped.too_long,
            DropCause::QueueFull => &mut self.dropped.queue_full,
            DropCause::RandomLoss => &mut self.dropped.random_loss,
            DropCause::BurstLoss => &mut self.dropped.burst_loss,
            DropCause::Outage => &mut self.dropped.outage,
            DropCause::DeviceRefused => &mut self.dropped.device_refused,
        };
        tally.add(length_bytes);
    }
}
