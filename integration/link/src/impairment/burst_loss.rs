//! Loss of packets in bursts: the Gilbert-Elliott model.
//!
//! ```text
//!            enter_bad
//!   ┌──────┐ ─────────► ┌─────┐
//!   │ good │            │ bad │      the state moves once a packet, then the packet is lost
//!   └──────┘ ◄───────── └─────┘      with the probability of the state it met
//!            leave_bad
//! ```
//! The long-term share of time in the bad state is `enter_bad / (enter_bad + leave_bad)`. A visit lasts `1 / leave_bad`
//! packets on average. With `loss_in_good = 0` and `loss_in_bad = 1` it is Gilbert's simple model.
//!
//! E. N. Gilbert, "Capacity of a Burst-Noise Channel", 1960; E. O. Elliott, "Estimates of Error Rates for Codes on
//! Burst-Noise Channels", 1963.

use crate::random::Chance;

/// The four probabilities of the model, each from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// Probability that the state changes from good to bad before a packet.
    pub enter_bad: f64,
    /// Probability that the state changes from bad to good before a packet.
    pub leave_bad: f64,
    /// Probability of loss in the good state.
    pub loss_in_good: f64,
    /// Probability of loss in the bad state.
    pub loss_in_bad: f64,
}

/// The state of the model. It starts in the good state.
#[derive(Clone, Debug)]
pub struct BurstLoss {
    bursts: Bursts,
    bad: bool,
    chance: Chance,
}

impl BurstLoss {
    /// Returns a channel in the good state.
    pub fn new(bursts: Bursts, chance: Chance) -> Self {
        Self { bursts, bad: false, chance }
    }

    /// Changes the state at random, and returns true if the next packet is lost.
    pub fn loses_next(&mut self) -> bool {
        let moves = self.chance.happens(if self.bad { self.bursts.leave_bad } else { self.bursts.enter_bad });
        if moves {
            self.bad = !self.bad;
        }
        self.chance.happens(if self.bad { self.bursts.loss_in_bad } else { self.bursts.loss_in_good })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Way;
    use crate::random::{Decides, Seed};

    fn fates(bursts: Bursts, packets: usize) -> Vec<bool> {
        let mut loss = BurstLoss::new(bursts, Seed(3).stream(Way::Down, Decides::BurstLoss));
        (0..packets).map(|_| loss.loses_next()).collect()
    }

    #[test]
    fn long_run_share_and_mean_length_of_bursts_are_those_of_the_model() {
        let bursts = Bursts { enter_bad: 0.01, leave_bad: 0.25, loss_in_good: 0.0, loss_in_bad: 1.0 };
        let fates = fates(bursts, 400_000);
        let lost = fates.iter().filter(|lost| **lost).count() as f64;
        let bursts_seen = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let share = lost / fates.len() as f64;
        assert!((share - 0.01 / 0.26).abs() < 0.003, "share lost {share}");
        let mean_length = lost / bursts_seen;
        assert!((mean_length - 4.0).abs() < 0.2, "mean burst {mean_length} packets");
    }

    #[test]
    fn a_channel_that_never_turns_bad_loses_only_what_good_loses() {
        let never = Bursts { enter_bad: 0.0, leave_bad: 1.0, loss_in_good: 0.0, loss_in_bad: 1.0 };
        assert!(fates(never, 10_000).iter().all(|lost| !lost));
    }
}
