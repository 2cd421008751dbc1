//! Hand-overs: at fixed intervals the terminal changes its satellite or its cell. The link is away for a moment, and then
//! has another delay.
//!
//! ```text
//!   delay  ──────┐gap      ┌──────────────┐gap
//!                └─ ─ ─────┘              └─ ─ ──────────
//!   time   0            every          2 × every
//! ```
//! One path replaces another, so both directions of a link draw the same gaps and the same delays. Each hand-over has
//! its own place in the stream of random numbers. So its draws do not depend on the packets that meet it.

use std::time::Duration;

use crate::impairment::outage::Kind;
use crate::random::Chance;
use crate::time::Moment;

/// A range of times. Each hand-over draws one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The shortest time.
    pub least: Duration,
    /// The longest time.
    pub most: Duration,
}

impl Range {
    fn at(self, fraction: f64) -> Duration {
        self.least + self.most.saturating_sub(self.least).mul_f64(fraction)
    }
}

/// The hand-overs of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// Time from one to the next. The first one comes after this time.
    pub every: Duration,
    /// Time for which the link is away; shorter than `every`.
    pub gap: Range,
    /// The delay of each path beyond that of the profile, one way.
    pub extra_delay: Range,
    /// The fate of packets in the gap.
    pub kind: Kind,
}

/// The gap before a path, and the extra delay of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Path {
    gap: Duration,
    extra_delay: Duration,
}

/// Draws each path by its number.
#[derive(Clone, Debug)]
pub struct Handovers {
    handover: Handover,
    chance: Chance,
}

impl Handovers {
    /// Returns the hand-overs. `chance` must be the same stream for both directions.
    pub fn new(handover: Handover, chance: Chance) -> Self {
        Self { handover, chance }
    }

    /// Returns the extra delay of a packet that leaves at `moment`.
    pub fn extra_delay(&self, moment: Moment) -> Duration {
        self.path(self.number(moment)).extra_delay
    }

    /// Returns the end of the gap that contains `moment`, if packets of a gap have this fate.
    pub fn end_of_gap(&self, moment: Moment, kind: Kind) -> Option<Moment> {
        let number = self.number(moment);
        // The first path was there before the link began.
        if number == 0 || self.handover.kind != kind {
            return None;
        }
        let start = Moment::from_nanos(self.every_nanos().saturating_mul(number));
        let end = start + self.path(number).gap;
        (moment < end).then_some(end)
    }

    fn every_nanos(&self) -> u64 {
        u64::try_from(self.handover.every.as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    fn number(&self, moment: Moment) -> u64 {
        moment.as_nanos() / self.every_nanos()
    }

    fn path(&self, number: u64) -> Path {
        let [gap, delay] = self.chance.pair_at(number);
        Path { gap: self.handover.gap.at(gap), extra_delay: self.handover.extra_delay.at(delay) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Way;
    use crate::random::{Decides, Seed};

    const GAP: Range = Range { least: Duration::from_millis(50), most: Duration::from_millis(200) };
    const EXTRA: Range = Range { least: Duration::ZERO, most: Duration::from_millis(17) };

    fn handovers(kind: Kind, seed: u64) -> Handovers {
        let handover = Handover { every: Duration::from_secs(15), gap: GAP, extra_delay: EXTRA, kind };
        Handovers::new(handover, Seed(seed).stream(Way::Down, Decides::Handover))
    }

    fn at(millis: u64) -> Moment {
        Moment::after_start(Duration::from_millis(millis))
    }

    #[test]
    fn the_delay_changes_at_each_hand_over_and_at_no_other_moment() {
        let handovers = handovers(Kind::Drop, 1);
        let delays: Vec<_> = (0..40).map(|number| handovers.extra_delay(at(number * 15_000))).collect();
        assert!(delays.iter().all(|delay| *delay <= EXTRA.most), "{delays:?}");
        assert!(delays.windows(2).all(|pair| pair[0] != pair[1]), "{delays:?}");
        for (number, delay) in (0..).zip(&delays) {
            assert_eq!(handovers.extra_delay(at(number * 15_000 + 14_999)), *delay);
        }
    }

    #[test]
    fn each_hand_over_has_a_gap_of_its_own_and_the_start_has_none() {
        let handovers = handovers(Kind::Hold, 1);
        assert_eq!(handovers.end_of_gap(at(0), Kind::Hold), None);
        assert_eq!(handovers.end_of_gap(at(14_999), Kind::Hold), None);
        let gaps: Vec<_> = (1..40)
            .map(|number| {
                let start = at(number * 15_000);
                handovers.end_of_gap(start, Kind::Hold).map_or(Duration::ZERO, |end| end.since(start))
            })
            .collect();
        assert!(gaps.iter().all(|gap| (GAP.least..=GAP.most).contains(gap)), "{gaps:?}");
        let shortest_and_longest = gaps.iter().min().zip(gaps.iter().max());
        assert!(
            shortest_and_longest.is_some_and(|(least, most)| *most > *least + Duration::from_millis(75)),
            "{gaps:?}"
        );
        assert_eq!(handovers.end_of_gap(at(15_200), Kind::Hold), None, "no gap is longer than the longest");
    }

    #[test]
    fn a_gap_has_the_fate_of_the_profile_alone() {
        assert_eq!(handovers(Kind::Drop, 1).end_of_gap(at(15_000), Kind::Hold), None);
        assert!(handovers(Kind::Drop, 1).end_of_gap(at(15_000), Kind::Drop).is_some());
    }

    #[test]
    fn the_draws_depend_on_the_seed_and_not_on_the_order_of_the_questions() {
        let (one, other) = (handovers(Kind::Hold, 7), handovers(Kind::Hold, 8));
        let forwards: Vec<_> = (0..20).map(|number| one.extra_delay(at(number * 15_000))).collect();
        let mut backwards: Vec<_> = (0..20).rev().map(|number| one.extra_delay(at(number * 15_000))).collect();
        backwards.reverse();
        assert_eq!(forwards, backwards);
        assert_ne!(forwards[0], other.extra_delay(at(0)));
    }
}
