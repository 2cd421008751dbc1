//! The JSON the emulator writes. Times are milliseconds after counting began (start, or the last `reset`).

use serde::Serialize;

use crate::counters::{Drops, Tally};
use crate::direction::{Direction, QueueLevels};
use crate::end::KernelDrops;
use crate::observe::Observed;
use crate::scheduling::Scheduling;
use crate::spread::Summary;
use crate::timeline::{Timeline, TimelineReport};

/// Everything counted, at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Statistics {
    /// Name or path of the profile.
    pub profile: String,
    /// Seed of everything random.
    pub seed: u64,
    /// How the event loop is scheduled.
    pub scheduling: Scheduling,
    /// Seconds counted.
    pub elapsed_s: f64,
    /// Processor time of the emulator since its start, in seconds. Much of it is the kernel's TCP work within its writes.
    pub cpu_s: f64,
    /// From A to B.
    pub up: DirectionStatistics,
    /// From B to A.
    pub down: DirectionStatistics,
    /// What the kernel lost at end A since the device was made; null once the device is gone.
    pub kernel_drops_a: Option<KernelDrops>,
    /// What the kernel lost at end B.
    pub kernel_drops_b: Option<KernelDrops>,
    /// What was seen.
    #[serde(flatten)]
    pub observed: Observed,
}

/// One direction.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionStatistics {
    /// Handed to the link.
    pub offered: Tally,
    /// Sent by the transmitter, lost or not.
    pub carried: Tally,
    /// Arrived.
    pub delivered: Tally,
    /// Not arrived, by cause.
    pub dropped: Drops,
    /// Arrived twice.
    pub duplicated_packets: u64,
    /// Held back to be overtaken.
    pub held_back_packets: u64,
    /// Between transmitter and arrival now.
    pub in_flight_packets: usize,
    /// Seconds the transmitter was sending.
    pub busy_s: f64,
    /// The queue.
    pub queue: QueueLevels,
    /// Wait for the transmitter.
    pub queueing: Option<Summary>,
    /// From offered to handed over.
    pub one_way_delay: Option<Summary>,
    /// Handed over later than due: the instrument's own error.
    pub lateness: Option<Summary>,
    /// Bytes sent by slices of time, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<TimelineReport>,
}

impl DirectionStatistics {
    /// Summarises a direction's counters.
    pub fn new(direction: &Direction) -> Self {
        let counters = direction.counters();
        Self {
            offered: counters.offered,
            carried: counters.carried,
            delivered: counters.delivered,
            dropped: counters.dropped,
            duplicated_packets: counters.duplicated_packets,
            held_back_packets: counters.held_back_packets,
            in_flight_packets: direction.in_flight_packets(),
            busy_s: counters.busy.as_secs_f64(),
            queue: direction.queue_levels(),
            queueing: counters.queueing.summary(),
            one_way_delay: counters.one_way_delay.summary(),
            lateness: counters.lateness.summary(),
            timeline: direction.timeline().map(Timeline::report),
        }
    }
}
