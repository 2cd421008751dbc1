//! Counts what a standby carries while no other link works: the cost of a metered one.

use std::time::Duration;

/// The count of one link.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct StandIn {
    /// The time of the last look, and the bytes of the interface at that time.
    last: Option<(Duration, (u64, u64))>,
    /// The time in which the link stood in.
    pub time: Duration,
    /// The bytes that came in at the interface in this time.
    pub down_bytes: u64,
    /// The bytes that went out.
    pub up_bytes: u64,
}

impl StandIn {
    /// Adds a look. `bytes` came in and went out at the interface so far. `stands_in`: the link carries what others would.
    pub(super) fn add(&mut self, now: Duration, (down, up): (u64, u64), stands_in: bool) {
        let before = self.last.replace((now, (down, up)));
        if let Some((then, (down_before, up_before))) = before.filter(|_| stands_in) {
            self.time += now.saturating_sub(then);
            // An interface that was made again counts from zero.
            self.down_bytes += down.saturating_sub(down_before);
            self.up_bytes += up.saturating_sub(up_before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_of_the_time_in_which_a_link_stands_in_count() {
        let s = Duration::from_secs;
        let mut stand_in = StandIn::default();
        let sum = |stand_in: &StandIn| (stand_in.time, stand_in.down_bytes, stand_in.up_bytes);
        stand_in.add(s(0), (1000, 100), true);
        assert_eq!(sum(&stand_in), (s(0), 0, 0), "the bytes from before the watch");
        stand_in.add(s(1), (1500, 200), false);
        assert_eq!(sum(&stand_in), (s(0), 0, 0));
        stand_in.add(s(2), (4500, 700), true);
        stand_in.add(s(4), (5000, 750), true);
        assert_eq!(sum(&stand_in), (s(3), 3500, 550));
        stand_in.add(s(4), (10, 10), true);
        assert_eq!(sum(&stand_in), (s(3), 3500, 550), "the interface was made again");
    }
}
