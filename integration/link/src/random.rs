//! One seed for the whole link, and from it an independent stream for every source of chance.
//!
//! A stream of its own for each direction and impairment makes runs comparable: whether the fiftieth packet down is lost
//! depends on the seed and on it being the fiftieth, and not on how many packets went up meanwhile or on whether jitter
//! is switched on. `ChaCha` is specified bit by bit and stays the same across versions and machines.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::Way;

/// What a stream of random numbers decides. The number is part of the generator's state: never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decides {
    /// Independent loss.
    RandomLoss = 1,
    /// Loss in bursts.
    BurstLoss = 2,
    /// Variation of the delay.
    Jitter = 3,
    /// Which packets are overtaken.
    Reordering = 4,
    /// Which packets arrive twice.
    Duplication = 5,
}

/// The seed everything random in a link derives from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// A fresh seed from the operating system, for a run that names none. Small enough to read out and to be exact in
    /// JSON, whose numbers lose bits past 2^53.
    pub fn fresh() -> Self {
        Self(u64::from(rand::random::<u32>()))
    }

    /// The stream that decides one thing in one direction.
    pub fn stream(self, way: Way, decides: Decides) -> Chance {
        let direction = match way {
            Way::Up => 0,
            Way::Down => 1,
        };
        let mut generator = ChaCha8Rng::seed_from_u64(self.0);
        generator.set_stream((decides as u64) << 8 | direction);
        Chance { generator }
    }
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Chance {
    generator: ChaCha8Rng,
}

impl Chance {
    /// True with the given probability. Takes one number from the stream whatever the probability is.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// A number from 0 up to, but not including, 1.
    pub fn fraction(&mut self) -> f64 {
        self.generator.random::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_numbers(seed: u64, way: Way, decides: Decides) -> Vec<f64> {
        let mut chance = Seed(seed).stream(way, decides);
        (0..8).map(|_| chance.fraction()).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_seed_others() {
        let one = first_numbers(7, Way::Down, Decides::RandomLoss);
        assert_eq!(one, first_numbers(7, Way::Down, Decides::RandomLoss));
        assert_ne!(one, first_numbers(8, Way::Down, Decides::RandomLoss));
    }

    #[test]
    fn directions_and_impairments_do_not_share_a_stream() {
        let one = first_numbers(7, Way::Down, Decides::RandomLoss);
        assert_ne!(one, first_numbers(7, Way::Up, Decides::RandomLoss));
        assert_ne!(one, first_numbers(7, Way::Down, Decides::Jitter));
    }

    #[test]
    fn the_numbers_of_a_seed_never_change() {
        // Published figures name their seed: a new version of the generator must not silently replay another run.
        let numbers = first_numbers(2004, Way::Up, Decides::BurstLoss);
        let frozen = [0.070_539, 0.819_599, 0.226_806, 0.738_114, 0.868_124, 0.623_861, 0.306_173, 0.416_443];
        assert!(numbers.iter().zip(frozen).all(|(number, known)| (number - known).abs() < 1e-5), "{numbers:?}");
    }
}
