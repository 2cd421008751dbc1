//! Reordering: some packets are held back for a while, and later ones overtake them.

use std::time::Duration;

use crate::random::Chance;

/// Holds back a random share of packets for a fixed extra time.
#[derive(Clone, Debug)]
pub struct Reordering {
    probability: f64,
    held_back: Duration,
    chance: Chance,
}

impl Reordering {
    /// Holds back this fraction of packets (0 to 1) by `held_back`. Only packets that follow within that time overtake,
    /// so a slow or idle link may keep the order.
    pub fn new(probability: f64, held_back: Duration, chance: Chance) -> Self {
        Self { probability, held_back, chance }
    }

    /// Returns the extra delay of the next packet, if it is held back.
    pub fn holds_back_next(&mut self) -> Option<Duration> {
        self.chance.happens(self.probability).then_some(self.held_back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Way;
    use crate::random::{Decides, Seed};

    #[test]
    fn the_chosen_share_is_held_back_by_the_set_time_and_the_rest_not_at_all() {
        let held_back = Duration::from_millis(30);
        let mut reordering = Reordering::new(0.1, held_back, Seed(5).stream(Way::Up, Decides::Reordering));
        let extra: Vec<_> = (0..10_000).filter_map(|_| reordering.holds_back_next()).collect();
        assert!(extra.iter().all(|time| *time == held_back));
        assert!((880..=1120).contains(&extra.len()), "{} of 10000 held back", extra.len());
    }
}
