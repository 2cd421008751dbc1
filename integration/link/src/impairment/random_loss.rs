//! Independent loss of packets.

use crate::random::Chance;

/// Loses each packet with the same probability, independent of earlier packets.
#[derive(Clone, Debug)]
pub struct RandomLoss {
    probability: f64,
    chance: Chance,
}

impl RandomLoss {
    /// Loses this fraction of packets (0 to 1).
    pub fn new(probability: f64, chance: Chance) -> Self {
        Self { probability, chance }
    }

    /// Returns true if the next packet is lost.
    pub fn loses_next(&mut self) -> bool {
        self.chance.happens(self.probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Way;
    use crate::random::{Decides, Seed};

    fn lost_of(packets: u32, probability: f64) -> u32 {
        let mut loss = RandomLoss::new(probability, Seed(1).stream(Way::Down, Decides::RandomLoss));
        (0..packets).map(|_| u32::from(loss.loses_next())).sum()
    }

    #[test]
    fn the_share_of_lost_packets_is_the_probability() {
        // Standard deviation of the count: sqrt(100000 * 0.02 * 0.98) = 44. The bounds are four of them on either side.
        let lost = lost_of(100_000, 0.02);
        assert!((1824..=2176).contains(&lost), "{lost} of 100000 lost");
    }

    #[test]
    fn none_and_all_are_exact() {
        assert_eq!(lost_of(10_000, 0.0), 0);
        assert_eq!(lost_of(10_000, 1.0), 10_000);
    }
}
