//! Propagation: how long after its last bit left a packet arrives.
//!
//! Order is kept unless reordering is asked for: a packet that jitter would let overtake arrives together with the one
//! before it instead. So with jitter and closely spaced packets the mean delay *seen* lies above the one set: the
//! statistics report it as it was.

use std::time::Duration;

use crate::impairment::jitter::Jitter;
use crate::time::Moment;

/// A constant delay, with or without jitter around it.
#[derive(Clone, Debug)]
pub struct Delay {
    mean: Duration,
    jitter: Option<Jitter>,
    latest_arrival: Moment,
}

impl Delay {
    /// A delay of `mean`, varied by `jitter`.
    pub fn new(mean: Duration, jitter: Option<Jitter>) -> Self {
        Self { mean, jitter, latest_arrival: Moment::START }
    }

    /// The least time any packet takes.
    pub fn least(&self) -> Duration {
        let earliness = self.jitter.as_ref().map_or(Duration::ZERO, Jitter::amount);
        self.mean.saturating_sub(earliness)
    }

    /// The time the next packet would take if it were alone.
    pub fn draw(&mut self) -> Duration {
        self.jitter.as_mut().map_or(self.mean, |jitter| jitter.next_delay(self.mean))
    }

    /// When a packet arrives whose last bit left at `left` and that drew `alone`: never before one that left earlier.
    pub fn arrival(&mut self, left: Moment, alone: Duration) -> Moment {
        self.latest_arrival = self.latest_arrival.max(left + alone);
        self.latest_arrival
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Way;
    use crate::impairment::jitter::Shape;
    use crate::random::{Decides, Seed};

    #[test]
    fn without_jitter_every_packet_takes_the_delay_set() {
        let mut delay = Delay::new(Duration::from_millis(300), None);
        for millis in [0, 1, 500] {
            let left = Moment::after_start(Duration::from_millis(millis));
            let alone = delay.draw();
            assert_eq!(delay.arrival(left, alone).since(left), Duration::from_millis(300));
        }
    }

    #[test]
    fn jitter_never_changes_the_order() {
        let jitter = Jitter::new(Duration::from_millis(50), Shape::Uniform, Seed(4).stream(Way::Down, Decides::Jitter));
        let mut delay = Delay::new(Duration::from_millis(60), Some(jitter));
        let arrivals: Vec<_> = (0..5_000)
            .map(|n| {
                let alone = delay.draw();
                delay.arrival(Moment::after_start(Duration::from_millis(n)), alone)
            })
            .collect();
        assert!(arrivals.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(arrivals.windows(2).any(|pair| pair[1].since(pair[0]) > Duration::from_millis(10)), "no jitter at all");
    }
}
