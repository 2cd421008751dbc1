//! The bound of TCP's retransmission timer.
//!
//! The timer doubles with each loss, up to 2 minutes. So bytes on a connection wait long after an outage. After one of
//! 32 s, the first lookup on the pipe took 23.9 s. With a bound of 3 s it took 2.8 s. Linux has the option
//! `TCP_RTO_MAX_MS` from 6.15 on.
//!
//! A bound that is too low harms a busy link. Each segment that only waits in a full queue is then sent again. On a ship's
//! link (700 ms, 500 kbit/s up) whose queue uploads fill, a bound of 1.9 s costs nothing beside one of 3.8 s. With 1 s,
//! a remote sends 675 segments again instead of 60, and a page takes 27 s instead of 21.

use std::time::Duration;

use longhaul_config::{Link, show_duration};

use super::capacity::Reasoned;
use super::host::HostFacts;

/// The bounds that the kernel takes.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_mins(2);

/// Returns the longest time between two retransmissions of a segment. None: the kernel cannot bound it.
pub(super) fn bound(link: &Link, host: &HostFacts) -> Option<Reasoned<Duration>> {
    // A segment behind a full queue is late, and not lost. A quarter of a round trip is for the spread.
    let queue = link.queueing_delay();
    let value = (link.rtt * 5 / 4 + queue).clamp(LEAST, MOST);
    host.bounds_retransmission.then(|| Reasoned {
        value,
        reason: format!(
            "1.25 x RTT {} + {} ms in a full queue, from 1 s to 2 min: a connection goes on within this time after an outage",
            show_duration(link.rtt),
            queue.as_millis()
        ),
    })
}

#[cfg(test)]
mod tests {
    use longhaul_config::Rate;

    use super::*;

    fn millis(rtt: u64, bits_per_second: u64, known: bool) -> Option<u128> {
        let rate = Rate { bits_per_second };
        let link = Link::of(Duration::from_millis(rtt), rate, rate);
        let host = HostFacts { bounds_retransmission: known, ..HostFacts::unknown() };
        bound(&link, &host).map(|bound| bound.value.as_millis())
    }

    #[test]
    fn a_late_segment_is_not_a_lost_one() {
        assert_eq!(millis(700, 500_000, true), Some(1923));
        assert_eq!(millis(600, 5_000_000, true), Some(1000), "the kernel takes no less");
        assert_eq!(millis(20, 100_000_000, true), Some(1000));
        assert_eq!(millis(500, 56_000, true), Some(9987));
        assert_eq!(millis(600, 5_000_000, false), None, "an older kernel");
    }
}
