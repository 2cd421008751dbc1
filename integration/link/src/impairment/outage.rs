//! Outages: times in which the link carries nothing.
//!
//! There are two kinds, because links fail in two ways. *Hold*: the transmitter waits and the queue fills. This happens
//! in a cell change, or when the modem knows that it has lost its carrier. *Drop*: the transmitter goes on sending and
//! every packet is lost, as behind a mast or a bridge.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Moment;

/// The fate of packets during an outage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// They wait in the queue.
    #[default]
    Hold,
    /// They are sent and lost.
    Drop,
}

/// An outage, once or repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Its first beginning.
    pub start: Moment,
    /// Its length.
    pub length: Duration,
    /// Time from one beginning to the next; longer than `length`.
    pub every: Option<Duration>,
    /// The fate of packets.
    pub kind: Kind,
}

impl Outage {
    /// Returns the end of the outage that contains `moment`.
    fn end_if_in(&self, moment: Moment) -> Option<Moment> {
        if moment < self.start {
            return None;
        }
        let start = match self.every {
            None => self.start,
            Some(period) => {
                let into_period = moment.since(self.start).as_nanos() % period.as_nanos().max(1);
                Moment::from_nanos(moment.as_nanos() - u64::try_from(into_period).unwrap_or(0))
            }
        };
        let end = start + self.length;
        (moment < end).then_some(end)
    }
}

/// All outages of one direction: those of the profile and those that a command added.
#[derive(Clone, Debug, Default)]
pub struct Outages {
    outages: Vec<Outage>,
}

impl Outages {
    /// Returns the outages of a profile.
    pub fn new(outages: Vec<Outage>) -> Self {
        Self { outages }
    }

    /// Adds an outage, and removes single ones that ended before `now`.
    pub fn add(&mut self, now: Moment, outage: Outage) {
        self.outages.retain(|known| known.every.is_some() || known.start + known.length > now);
        self.outages.push(outage);
    }

    /// Returns the first moment at or after `from` at which the transmitter may begin a packet.
    pub fn may_send_from(&self, from: Moment) -> Moment {
        let mut moment = from;
        // Overlapping outages: the end of one may lie within another. Each step moves past the rest of at least one
        // outage. The bound matters only if the outages together cover all time; then the result is late, but the loop
        // ends.
        for _ in 0..=self.outages.len() {
            let Some(end) = self.ends(moment, Kind::Hold) else { break };
            moment = end;
        }
        moment
    }

    /// Returns true if a packet whose last bit leaves at `moment` is lost.
    pub fn loses(&self, moment: Moment) -> bool {
        self.ends(moment, Kind::Drop).is_some()
    }

    fn ends(&self, moment: Moment, kind: Kind) -> Option<Moment> {
        self.outages.iter().filter(|outage| outage.kind == kind).filter_map(|outage| outage.end_if_in(moment)).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::after_start(Duration::from_secs(seconds))
    }

    fn outage(start: u64, length: u64, every: Option<u64>, kind: Kind) -> Outage {
        Outage { start: at(start), length: Duration::from_secs(length), every: every.map(Duration::from_secs), kind }
    }

    #[test]
    fn a_held_packet_waits_for_the_end_and_others_do_not_wait() {
        let outages = Outages::new(vec![outage(10, 5, None, Kind::Hold)]);
        assert_eq!(outages.may_send_from(at(9)), at(9));
        assert_eq!(outages.may_send_from(at(10)), at(15));
        assert_eq!(outages.may_send_from(at(14)), at(15));
        assert_eq!(outages.may_send_from(at(15)), at(15));
        assert!(!outages.loses(at(12)), "holding loses nothing");
    }

    #[test]
    fn a_dropping_outage_loses_and_does_not_delay() {
        let outages = Outages::new(vec![outage(10, 5, None, Kind::Drop)]);
        assert_eq!([9, 10, 14, 15].map(|second| outages.loses(at(second))), [false, true, true, false]);
        assert_eq!(outages.may_send_from(at(12)), at(12));
    }

    #[test]
    fn a_repeated_outage_comes_back_every_period_and_not_before_its_start() {
        let outages = Outages::new(vec![outage(10, 5, Some(60), Kind::Drop)]);
        assert_eq!(
            [0, 9, 12, 15, 69, 70, 74, 75, 3610, 3616].map(|second| outages.loses(at(second))),
            [false, false, true, false, false, true, true, false, true, false]
        );
    }

    #[test]
    fn outages_that_overlap_are_one() {
        let outages = Outages::new(vec![outage(10, 5, None, Kind::Hold), outage(14, 10, None, Kind::Hold)]);
        assert_eq!(outages.may_send_from(at(11)), at(24));
    }

    #[test]
    fn an_outage_asked_for_later_counts_from_then_on_and_old_ones_are_forgotten() {
        let mut outages = Outages::new(vec![outage(1, 1, None, Kind::Hold), outage(5, 1, Some(10), Kind::Hold)]);
        outages.add(at(20), outage(20, 3, None, Kind::Hold));
        assert_eq!(outages.may_send_from(at(20)), at(23));
        assert_eq!(outages.may_send_from(at(25)), at(26));
        assert_eq!(outages.outages.len(), 2);
    }
}
