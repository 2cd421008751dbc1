//! The counters of one direction.

use std::time::Duration;

use serde::Serialize;

use crate::spread::Spread;

/// Packets and their bytes (whole IP packets).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Number of packets.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
}

impl Tally {
    /// Counts one packet.
    pub fn add(&mut self, length_bytes: usize) {
        self.packets += 1;
        self.bytes += length_bytes as u64;
    }

    /// Removes one packet.
    pub fn remove(&mut self, length_bytes: usize) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(length_bytes as u64);
    }
}

/// Why a packet did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// Longer than the link's MTU.
    TooLong,
    /// The queue had no room for it.
    QueueFull,
    /// Lost on the air by independent loss.
    RandomLoss,
    /// Lost on the air in a burst.
    BurstLoss,
    /// Sent during an outage of kind drop.
    Outage,
    /// Refused by the receiving kernel (device down, malformed packet).
    DeviceRefused,
}

/// Dropped packets, by cause.
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
    /// Packets offered to the link.
    pub offered: Tally,
    /// Packets sent by the transmitter, lost or not. These used the link's capacity.
    pub carried: Tally,
    /// Packets that the receiving end accepted.
    pub delivered: Tally,
    /// Packets that did not arrive.
    pub dropped: Drops,
    /// Packets that arrived twice (each counts twice as delivered).
    pub duplicated_packets: u64,
    /// Packets held back so that later ones overtake them.
    pub held_back_packets: u64,
    /// Time for which the transmitter was sending.
    pub busy: Duration,
    /// Time between being offered and the start of transmission.
    pub queueing: Spread,
    /// Time between being offered and being written to the receiving kernel.
    pub one_way_delay: Spread,
    /// Delay of deliveries beyond their due time: the emulator's own error.
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
