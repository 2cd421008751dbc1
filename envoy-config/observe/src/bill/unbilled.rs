//! The bytes of the link that stand in no line of a client: responses whose clients had left, the frames of connections, lookups
//! and health checks. With them, the accounts add up to what the link carried.

use std::collections::VecDeque;

use crate::why::Crossed;

/// The time after which the lines of all bytes have come. A stream under way has one each 10 s.
const LATE_S: u64 = 15;
/// Without a reading for so long, nothing was counted, and the next one is the first. A run with groups reads each 10 s.
const FORGET_S: u64 = 60;

/// Finds the bytes that nobody has.
#[derive(Debug, Clone, Default)]
pub(super) struct Unbilled {
    /// The part of the use of the link that needs no client any more: before the first reading, of a client, or of nobody.
    accounted: Crossed,
    /// Readings whose lines may still come, with their times in seconds since 1970. The last one stays.
    readings: VecDeque<(u64, Crossed)>,
}

impl Unbilled {
    /// Counts the bytes of a line.
    pub(super) fn bill(&mut self, down: u64, up: u64) {
        self.accounted.add(down, up);
    }

    /// Takes the use of the link at a time. Returns the bytes that crossed some time before, and that no line has had since.
    pub(super) fn read(&mut self, crossed: Crossed, at_s: u64) -> Crossed {
        self.readings.retain(|(read_s, _)| *read_s <= at_s);
        if self.readings.back().is_none_or(|(read_s, _)| read_s + FORGET_S < at_s) {
            *self = Self { accounted: crossed, ..Self::default() };
        }
        self.readings.push_back((at_s, crossed));
        let mut due = None;
        while let Some((_, crossed)) = self.readings.pop_front_if(|(read_s, _)| *read_s + LATE_S <= at_s) {
            due = Some(crossed);
        }
        let Some(due) = due else { return Crossed::default() };
        let new = due.beyond(self.accounted);
        self.accounted.add(new.down, new.up);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crossed(down: u64, up: u64) -> Crossed {
        Crossed { down, up }
    }

    #[test]
    fn what_no_line_has_after_a_while_belongs_to_nobody() {
        let mut unbilled = Unbilled::default();
        assert_eq!(unbilled.read(crossed(100, 10), 1000), crossed(0, 0), "before the first line");
        assert_eq!(unbilled.read(crossed(700, 40), 1010), crossed(0, 0));
        unbilled.bill(400, 20);
        assert_eq!(unbilled.read(crossed(9000, 500), 1024), crossed(0, 0), "a line may follow");
        assert_eq!(unbilled.read(crossed(9000, 500), 1025), crossed(200, 10));
        assert_eq!(unbilled.read(crossed(9000, 500), 1026), crossed(0, 0), "once");
        unbilled.bill(8500, 460);
        assert_eq!(unbilled.read(crossed(9000, 500), 1060), crossed(0, 0), "the lines say more than the connections");
        assert_eq!(unbilled.read(crossed(9300, 500), 1100), crossed(0, 0));
        assert_eq!(unbilled.read(crossed(9300, 500), 1120), crossed(100, 0));
    }

    #[test]
    fn after_a_pause_and_with_a_clock_set_back_it_begins_again() {
        let mut unbilled = Unbilled::default();
        unbilled.read(crossed(0, 0), 5000);
        for (begin, at_s) in [(10, 5061), (50, 1000)] {
            unbilled.bill(7, 7);
            assert_eq!(unbilled.read(crossed(begin, 0), at_s), crossed(0, 0));
            assert_eq!(unbilled.read(crossed(begin + 5, 0), at_s + 40), crossed(0, 0));
            assert_eq!(unbilled.read(crossed(begin + 9, 0), at_s + 60), crossed(5, 0));
        }
    }
}
