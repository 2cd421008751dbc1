//! One direction of the link: the stages of a packet, in their order.
//!
//! ```text
//!  offered ──► too long? ──► queue ══► transmitter ──► on the air ──► propagation ──► delivered
//!                             full?     rate,           random loss,   delay, jitter,
//!                                       outage: hold    burst loss,    reordering,
//!                                                       outage: drop   hand-over, duplication
//! ```
//! Loss comes *after* the transmitter, as on a radio link: a lost packet has used its time on the air. (A tool that
//! drops packets before the transmitter gives the flow more capacity than the link has.)
//!
//! The limit of the queue includes the packet in transmission. So no packet waits longer than `limit × 8 / rate`,
//! including its own transmission. A transmission that has begun ends even if an outage begins meanwhile.
//!
//! This module has no clock. The moments of the offers, the profile and the seed decide everything. A late call of
//! [`Direction::advance`] only delays the moment at which the caller learns of an event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::Way;
use crate::counters::{Counters, DropCause};
use crate::impairment::burst_loss::BurstLoss;
use crate::impairment::delay::Delay;
use crate::impairment::duplication::Duplication;
use crate::impairment::fair_queue::{FairBy, FairQueue};
use crate::impairment::handover::Handovers;
use crate::impairment::jitter::Jitter;
use crate::impairment::levels::QueueLevels;
use crate::impairment::outage::{Kind, Outage, Outages};
use crate::impairment::queue::DropTail;
use crate::impairment::random_loss::RandomLoss;
use crate::impairment::rate::Rate;
use crate::impairment::reordering::Reordering;
use crate::profile::DirectionProfile;
use crate::random::{Decides, Seed};
use crate::time::Moment;
use crate::timeline::Timeline;

/// More gaps than an outage can join.
const MOST_GAPS_IN_A_ROW: usize = 1000;

/// A packet that has reached the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The IP packet.
    pub packet: Vec<u8>,
    /// The moment at which it was offered to the link.
    pub offered: Moment,
    /// The moment at which it was due to arrive.
    pub due: Moment,
}

/// The result of offering a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It is in the queue (and may still be lost on the air). A fair queue may have dropped another packet for it, or
    /// this one.
    Queued,
    /// It was dropped at once.
    Dropped(DropCause),
}

#[derive(Clone, Debug)]
struct Waiting {
    packet: Vec<u8>,
    offered: Moment,
}

#[derive(Clone, Copy, Debug)]
struct Transmission {
    start: Moment,
    finish: Moment,
}

/// The queue in front of the transmitter.
#[derive(Clone, Debug)]
enum Queue {
    OneForAll(DropTail<Waiting>),
    Fair(FairBy, FairQueue<Waiting>),
}

impl Queue {
    fn new(fair: Option<FairBy>, limit_bytes: usize) -> Self {
        match fair {
            None => Self::OneForAll(DropTail::new(limit_bytes)),
            Some(by) => Self::Fair(by, FairQueue::new(limit_bytes)),
        }
    }

    fn head_bytes(&mut self) -> Option<usize> {
        match self {
            Self::OneForAll(queue) => queue.head_bytes(),
            Self::Fair(_, queue) => queue.head_bytes(),
        }
    }

    fn pop(&mut self) -> Option<Waiting> {
        match self {
            Self::OneForAll(queue) => queue.pop(),
            Self::Fair(_, queue) => queue.pop(),
        }
    }

    fn levels(&self) -> QueueLevels {
        match self {
            Self::OneForAll(queue) => queue.levels(),
            Self::Fair(_, queue) => queue.levels(),
        }
    }

    fn forget_highest(&mut self) {
        match self {
            Self::OneForAll(queue) => queue.forget_highest(),
            Self::Fair(_, queue) => queue.forget_highest(),
        }
    }
}

/// A packet after the transmitter. The order is by arrival, then by departure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct InFlight {
    due: Moment,
    departure: u64,
    offered: Moment,
    packet: Vec<u8>,
}

/// One direction of the link.
#[derive(Clone, Debug)]
pub struct Direction {
    mtu_bytes: usize,
    rate: Option<Rate>,
    way: Way,
    queue: Queue,
    transmission: Option<Transmission>,
    outages: Outages,
    handovers: Option<Handovers>,
    random_loss: Option<RandomLoss>,
    burst_loss: Option<BurstLoss>,
    delay: Delay,
    reordering: Option<Reordering>,
    duplication: Option<Duplication>,
    in_flight: BinaryHeap<Reverse<InFlight>>,
    departures: u64,
    counters: Counters,
    timeline: Option<Timeline>,
}

impl Direction {
    /// Returns an idle direction with the behaviour of the profile.
    pub fn new(way: Way, profile: &DirectionProfile, outages: Vec<Outage>, mtu_bytes: usize, seed: Seed) -> Self {
        let jitter =
            profile.jitter.map(|jitter| Jitter::new(jitter.amount, jitter.shape, seed.stream(way, Decides::Jitter)));
        Self {
            mtu_bytes,
            rate: profile.rate,
            way,
            queue: Queue::new(profile.fair, profile.queue_bytes),
            transmission: None,
            outages: Outages::new(outages),
            // Both directions draw from one stream, because a hand-over replaces the path of both.
            handovers: profile
                .handover
                .map(|handover| Handovers::new(handover, seed.stream(Way::Down, Decides::Handover))),
            random_loss: profile
                .random_loss
                .map(|probability| RandomLoss::new(probability, seed.stream(way, Decides::RandomLoss))),
            burst_loss: profile.burst_loss.map(|bursts| BurstLoss::new(bursts, seed.stream(way, Decides::BurstLoss))),
            delay: Delay::new(profile.delay, jitter),
            reordering: profile.reordering.map(|reordering| {
                let chance = seed.stream(way, Decides::Reordering);
                Reordering::new(reordering.probability, reordering.held_back, chance)
            }),
            duplication: profile
                .duplication
                .map(|probability| Duplication::new(probability, seed.stream(way, Decides::Duplication))),
            in_flight: BinaryHeap::new(),
            departures: 0,
            counters: Counters::default(),
            timeline: None,
        }
    }

    /// Also counts the bytes sent in each slice of time of this length, from the start.
    #[must_use]
    pub fn with_timeline(mut self, slice: Option<Duration>) -> Self {
        self.timeline = slice.map(|slice| Timeline::new(slice, Moment::START));
        self
    }

    /// Offers a packet to the link.
    pub fn offer(&mut self, now: Moment, packet: Vec<u8>) -> Offer {
        self.advance(now);
        let length = packet.len();
        self.counters.offered.add(length);
        if length > self.mtu_bytes {
            return self.drop_one(DropCause::TooLong, length);
        }
        let waiting = Waiting { packet, offered: now };
        match &mut self.queue {
            Queue::OneForAll(queue) => {
                if queue.push(length, waiting).is_err() {
                    return self.drop_one(DropCause::QueueFull, length);
                }
            }
            Queue::Fair(by, queue) => {
                let key = by.key(self.way, &waiting.packet);
                for length in queue.push(key, length, waiting) {
                    self.counters.drop_one(DropCause::QueueFull, length);
                }
            }
        }
        if self.transmission.is_none() {
            self.begin_next(now);
        }
        Offer::Queued
    }

    /// Processes all events up to and including `now`.
    pub fn advance(&mut self, now: Moment) {
        while let Some(transmission) = self.transmission
            && transmission.finish <= now
        {
            self.finish(transmission);
            self.begin_next(transmission.finish);
        }
    }

    /// Returns the next packet that has arrived by `now`. Call it until it returns `None`.
    pub fn deliver(&mut self, now: Moment) -> Option<Delivery> {
        self.advance(now);
        if self.in_flight.peek()?.0.due > now {
            return None;
        }
        let InFlight { due, offered, packet, .. } = self.in_flight.pop()?.0;
        self.counters.delivered.add(packet.len());
        self.counters.one_way_delay.record(now.since(offered));
        self.counters.lateness.record(now.since(due));
        Some(Delivery { packet, offered, due })
    }

    /// Returns the moment at which [`Self::deliver`] may next return a packet, or `None` while the direction is idle.
    ///
    /// The moment may be too early, because the packet in transmission may be lost or delayed by jitter. It is never
    /// too late. So a link with a long delay wakes once for each packet and not twice.
    pub fn next_event(&self) -> Option<Moment> {
        let arrival = self.in_flight.peek().map(|first| first.0.due);
        let transmission = self.transmission.map(|transmission| transmission.finish + self.delay.least());
        match (arrival, transmission) {
            (Some(arrival), Some(transmission)) => Some(arrival.min(transmission)),
            (one, other) => one.or(other),
        }
    }

    /// Begins an outage now. A transmission that waits for the end of another outage also waits for this one.
    pub fn begin_outage(&mut self, now: Moment, outage: Outage) {
        self.advance(now);
        self.outages.add(now, outage);
        if let Some(transmission) = self.transmission
            && transmission.start > now
        {
            self.begin_next(now);
        }
    }

    /// Counts a delivery that the receiving device refused.
    pub fn refused_by_device(&mut self, length_bytes: usize) {
        self.counters.delivered.remove(length_bytes);
        self.counters.drop_one(DropCause::DeviceRefused, length_bytes);
    }

    /// Returns the counters since the start or the last [`Self::reset_counters`].
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the bytes sent by slices of time, if the caller requested them.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.timeline.as_ref()
    }

    /// Restarts the counters. Packets on the link are not affected.
    pub fn reset_counters(&mut self, now: Moment) {
        self.advance(now);
        self.counters = Counters::default();
        self.queue.forget_highest();
        if let Some(timeline) = &mut self.timeline {
            timeline.restart(now);
        }
    }

    /// Returns the levels of the queue.
    pub fn queue_levels(&self) -> QueueLevels {
        self.queue.levels()
    }

    /// Returns the number of packets between the transmitter and their arrival.
    pub fn in_flight_packets(&self) -> usize {
        self.in_flight.len()
    }

    fn begin_next(&mut self, earliest: Moment) {
        self.transmission = self.queue.head_bytes().map(|length| {
            let start = self.may_send_from(earliest);
            let time_on_air = self.rate.map_or(Duration::ZERO, |rate| rate.serialisation(length));
            Transmission { start, finish: start + time_on_air }
        });
    }

    /// Returns the first moment at or after `earliest` at which neither an outage nor the gap of a hand-over holds packets.
    fn may_send_from(&self, earliest: Moment) -> Moment {
        let mut moment = self.outages.may_send_from(earliest);
        // An outage may end in a gap, and a gap in an outage. The bound matters only if both together cover all time.
        for _ in 0..MOST_GAPS_IN_A_ROW {
            let Some(end) = self.end_of_gap(moment, Kind::Hold) else { break };
            moment = self.outages.may_send_from(end);
        }
        moment
    }

    fn end_of_gap(&self, moment: Moment, kind: Kind) -> Option<Moment> {
        self.handovers.as_ref().and_then(|handovers| handovers.end_of_gap(moment, kind))
    }

    fn finish(&mut self, transmission: Transmission) {
        let Some(Waiting { packet, offered }) = self.queue.pop() else { return };
        let left = transmission.finish;
        self.counters.carried.add(packet.len());
        if let Some(timeline) = &mut self.timeline {
            timeline.add(left, packet.len());
        }
        self.counters.busy += transmission.finish.since(transmission.start);
        self.counters.queueing.record(transmission.start.since(offered));

        // Every stage draws its random numbers for every packet, lost or not. So the fate of the n-th packet does not
        // depend on the other impairments.
        let lost_alone = self.random_loss.as_mut().is_some_and(RandomLoss::loses_next);
        let lost_in_burst = self.burst_loss.as_mut().is_some_and(BurstLoss::loses_next);
        let doubled = self.duplication.as_mut().is_some_and(Duplication::doubles_next);
        let held_back = self.reordering.as_mut().and_then(Reordering::holds_back_next);
        let alone = self.delay.draw();
        let cause = if self.outages.loses(left) || self.end_of_gap(left, Kind::Drop).is_some() {
            Some(DropCause::Outage)
        } else if lost_in_burst {
            Some(DropCause::BurstLoss)
        } else if lost_alone {
            Some(DropCause::RandomLoss)
        } else {
            None
        };
        if let Some(cause) = cause {
            self.drop_one(cause, packet.len());
            return;
        }
        if held_back.is_some() {
            self.counters.held_back_packets += 1;
        }
        let path = self.handovers.as_ref().map_or(Duration::ZERO, |handovers| handovers.extra_delay(left));
        let due = self.delay.arrival(left, alone + path) + held_back.unwrap_or_default();
        if doubled {
            self.counters.duplicated_packets += 1;
            self.fly(due, offered, packet.clone());
        }
        self.fly(due, offered, packet);
    }

    fn fly(&mut self, due: Moment, offered: Moment, packet: Vec<u8>) {
        self.departures += 1;
        self.in_flight.push(Reverse(InFlight { due, departure: self.departures, offered, packet }));
    }

    fn drop_one(&mut self, cause: DropCause, length_bytes: usize) -> Offer {
        self.counters.drop_one(cause, length_bytes);
        Offer::Dropped(cause)
    }
}
