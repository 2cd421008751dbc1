//! Variation of the delay from packet to packet.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::random::Chance;

/// The distribution of the variation. Both are symmetric and bounded. So the mean of the draws is the configured delay,
/// and no packet is early by more than the amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Every value within the amount has the same probability.
    #[default]
    Uniform,
    /// Bell-shaped, the mean of four uniform values: standard deviation 0.29 of the amount.
    Bell,
}

/// Draws the variation for each packet in turn.
#[derive(Clone, Debug)]
pub struct Jitter {
    amount: Duration,
    shape: Shape,
    chance: Chance,
}

impl Jitter {
    /// Returns a variation of at most `amount` in either direction.
    pub fn new(amount: Duration, shape: Shape, chance: Chance) -> Self {
        Self { amount, shape, chance }
    }

    /// Returns the most that a packet can be early or late.
    pub fn amount(&self) -> Duration {
        self.amount
    }

    /// Returns the delay of the next packet, around `mean`. If `mean` is below the amount, the earliest delay is zero;
    /// the profile reader refuses such values.
    pub fn next_delay(&mut self, mean: Duration) -> Duration {
        let draws = match self.shape {
            Shape::Uniform => 1,
            Shape::Bell => 4,
        };
        let sum: f64 = (0..draws).map(|_| self.chance.fraction()).sum();
        let earliest = mean.saturating_sub(self.amount);
        earliest + (self.amount * 2).mul_f64(sum / f64::from(draws))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Way;
    use crate::random::{Decides, Seed};

    const MEAN: Duration = Duration::from_millis(100);
    const AMOUNT: Duration = Duration::from_millis(20);

    fn delays(shape: Shape) -> Vec<f64> {
        let mut jitter = Jitter::new(AMOUNT, shape, Seed(9).stream(Way::Down, Decides::Jitter));
        (0..20_000).map(|_| jitter.next_delay(MEAN).as_secs_f64() * 1e3).collect()
    }

    fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn no_delay_leaves_the_bounds_and_the_mean_is_the_delay_set() {
        for (shape, expected_deviation) in [(Shape::Uniform, 20.0 / 3f64.sqrt()), (Shape::Bell, 20.0 / 12f64.sqrt())] {
            let delays = delays(shape);
            assert!(delays.iter().all(|delay| (80.0..=120.0).contains(delay)), "{shape:?}");
            let (mean, deviation) = mean_and_deviation(&delays);
            assert!((mean - 100.0).abs() < 0.4, "{shape:?}: mean {mean} ms");
            assert!((deviation - expected_deviation).abs() < 0.3, "{shape:?}: deviation {deviation} ms");
        }
    }
}
