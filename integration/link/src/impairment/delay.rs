//! Propagation: the time from a packet's last bit at the transmitter to its arrival.
//!
//! The order stays unless the profile sets reordering. A packet that jitter would let overtake arrives together with
//! the one before it instead. So the mean delay of closely spaced packets with jitter is above the configured one. The
//! statistics report the observed delay.

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
    /// Returns a delay of `mean`, varied by `jitter`.
    pub fn new(mean: Duration, jitter: Option<Jitter>) -> Self {
        Self { mean, jitter, latest_arrival: Moment::START }
    }

    /// Returns the shortest time that any packet takes.
    pub fn least(&self) -> Duration {
        let earliness = self.jitter.as_ref().map_or(Duration::ZERO, Jitter::amount);
        self.mean.saturating_sub(earliness)
    }

    /// Returns the time that the next packet would take if it were alone.
    pub fn draw(&mut self) -> Duration {
        self.jitter.as_mut().map_or(self.mean, |jitter| jitter.next_delay(self.mean))
    }

    /// Returns the arrival of a packet whose last bit left at `left` and whose drawn delay is `alone`. It never arrives
    /// before a packet that left earlier.
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
