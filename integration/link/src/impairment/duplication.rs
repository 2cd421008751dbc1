//! Packets that arrive twice, as when the link layer retransmits because an acknowledgement was lost.

use crate::random::Chance;

/// Duplicates each packet with the same probability.
#[derive(Clone, Debug)]
pub struct Duplication {
    probability: f64,
    chance: Chance,
}

impl Duplication {
    /// Duplicates this fraction of packets (0 to 1).
    pub fn new(probability: f64, chance: Chance) -> Self {
        Self { probability, chance }
    }

    /// Returns true if the next packet arrives twice.
    pub fn doubles_next(&mut self) -> bool {
        self.chance.happens(self.probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Way;
    use crate::random::{Decides, Seed};

    #[test]
    fn none_and_all_are_exact_and_a_half_is_about_half() {
        let doubled = |probability| {
            let mut duplication = Duplication::new(probability, Seed(1).stream(Way::Up, Decides::Duplication));
            (0..10_000).filter(|_| duplication.doubles_next()).count()
        };
        assert_eq!(doubled(0.0), 0);
        assert_eq!(doubled(1.0), 10_000);
        assert!((4_800..=5_200).contains(&doubled(0.5)), "{}", doubled(0.5));
    }
}
