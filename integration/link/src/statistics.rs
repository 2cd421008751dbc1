//! The JSON that the emulator writes. Times are milliseconds after counting began, at the start or the last `reset`.

use serde::Serialize;

use crate::counters::{Drops, Tally};
use crate::direction::Direction;
use crate::end::KernelDrops;
use crate::impairment::levels::QueueLevels;
use crate::observe::Observed;
use crate::scheduling::Scheduling;
use crate::spread::Summary;
use crate::timeline::{Timeline, TimelineReport};

/// All counters at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Statistics {
    /// Name or path of the profile.
    pub profile: String,
    /// Seed of all random decisions.
    pub seed: u64,
    /// Scheduling of the event loop.
    pub scheduling: Scheduling,
    /// Seconds since counting began.
    pub elapsed_s: f64,
    /// CPU time of the emulator since its start, in seconds. Much of it is the kernel's TCP work within the emulator's
    /// writes.
    pub cpu_s: f64,
    /// From A to B.
    pub up: DirectionStatistics,
    /// From B to A.
    pub down: DirectionStatistics,
    /// Packets that the kernel lost at end A since the device was created; null once the device is gone.
    pub kernel_drops_a: Option<KernelDrops>,
    /// Packets that the kernel lost at end B.
    pub kernel_drops_b: Option<KernelDrops>,
    /// The connections, flows and queries on the link.
    #[serde(flatten)]
    pub observed: Observed,
}

/// The counters of one direction.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionStatistics {
    /// Packets offered to the link.
    pub offered: Tally,
    /// Packets sent by the transmitter, lost or not.
    pub carried: Tally,
    /// Packets that arrived.
    pub delivered: Tally,
    /// Packets that did not arrive, by cause.
    pub dropped: Drops,
    /// Packets that arrived twice.
    pub duplicated_packets: u64,
    /// Packets held back so that later ones overtake them.
    pub held_back_packets: u64,
    /// Packets between the transmitter and their arrival at this moment.
    pub in_flight_packets: usize,
    /// Seconds for which the transmitter was sending.
    pub busy_s: f64,
    /// Levels of the queue.
    pub queue: QueueLevels,
    /// Time in the queue before transmission.
    pub queueing: Option<Summary>,
    /// Time from being offered to being delivered.
    pub one_way_delay: Option<Summary>,
    /// Delay beyond the due time: the emulator's own error.
    pub lateness: Option<Summary>,
    /// Bytes sent by slices of time, if `--timeline-ms` is set.
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
