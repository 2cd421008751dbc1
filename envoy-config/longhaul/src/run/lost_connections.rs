//! Connections over the link that are gone while Envoy takes them for unused ones.
//!
//! Envoy does not read from a connection until a client needs it, and learns of its end by `EPOLLRDHUP` alone. libevent passes
//! that on only where no error came with it. A reset, or probes without a response, are errors. So the connection stays in
//! Envoy's pool, and the client that gets it is closed at once. The kernel no longer has it, and that is how a run notices.

use std::time::Duration;

use longhaul_config::{PipeTransport, Role, Settings};
use longhaul_derive::{Carrier, HostFacts, derive};
use longhaul_observe::Endpoint;

use super::probe::stats;

/// The number of looks in a row that find a connection missing. One look may fall between an end and Envoy's notice of it.
const LOOKS: u32 = 2;
/// The shortest time between two reports. After one, Envoy closes what it has and opens others.
const PAUSE: Duration = Duration::from_secs(10);

/// The connections that Envoy and the kernel have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) envoy: usize,
    pub(super) kernel: usize,
}

/// The comparison of two readings of one remote.
#[derive(Debug)]
pub(super) struct LostConnections {
    /// The counters of Envoy's connections over the link.
    counters: &'static str,
    /// The number of established ones at the last reading.
    established: usize,
    looks: u32,
    reported_at: Option<Duration>,
}

impl LostConnections {
    /// Returns the comparison for a box. None: it opens no connections for clients in advance, or they are streams of the pipe.
    pub(super) fn of(settings: &Settings) -> Option<Self> {
        let Role::Remote(remote) = &settings.role else { return None };
        let warm = derive(settings, &HostFacts::unknown()).warm?;
        if warm.carrier != Carrier::Connections || warm.number == 0 {
            return None;
        }
        let counters = match remote.transport {
            PipeTransport::H3 => r"^cluster\.warm\.upstream_cx_active$",
            PipeTransport::H2 => r"^cluster\.(pipe|warm)\.upstream_cx_active$",
        };
        Some(Self { counters, established: 0, looks: 0, reported_at: None })
    }

    /// Takes a reading with so many established connections. Returns the number of lost ones when it is time to report them.
    /// `count` is called only after some have ended. The connection of the health check is in no counter of Envoy, so it may
    /// hide one lost connection.
    pub(super) fn add(
        &mut self,
        at: Duration,
        established: usize,
        count: impl FnOnce(&str) -> Option<Counted>,
    ) -> Option<usize> {
        let fewer = established < self.established;
        self.established = established;
        if !fewer && self.looks == 0 {
            return None;
        }
        let lost = count(self.counters).map_or(0, |counted| counted.envoy.saturating_sub(counted.kernel));
        self.looks = if lost > 0 { self.looks.saturating_add(1) } else { 0 };
        let rests = self.reported_at.is_some_and(|before| at.saturating_sub(before) < PAUSE);
        if self.looks < LOOKS || rests {
            return None;
        }
        (self.looks, self.reported_at) = (0, Some(at));
        Some(lost)
    }
}

/// Returns the sum of Envoy's counters that match.
pub(super) fn in_envoy(admin: &Endpoint, counters: &str) -> Option<usize> {
    sum(&stats(admin, counters)?)
}

fn sum(text: &str) -> Option<usize> {
    text.lines().filter_map(|line| line.rsplit_once(": ")).map(|(_, value)| value.trim().parse::<usize>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections() -> LostConnections {
        LostConnections { counters: "", established: 0, looks: 0, reported_at: None }
    }

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn connections_that_the_kernel_no_longer_has_are_reported_once_and_again_after_a_pause() {
        let mut lost = connections();
        let counted = |envoy, kernel| move |_: &str| Some(Counted { envoy, kernel });
        let silent = |_: &str| panic!("nothing ended, so nothing is counted");
        assert_eq!(lost.add(seconds(0), 50, silent), None);
        assert_eq!(lost.add(seconds(1), 51, silent), None);
        assert_eq!(lost.add(seconds(2), 3, counted(50, 3)), None, "Envoy may notice");
        assert_eq!(lost.add(seconds(3), 3, counted(40, 3)), Some(37));
        assert_eq!(lost.add(seconds(4), 3, silent), None, "they are reported");
        assert_eq!(lost.add(seconds(5), 2, counted(40, 2)), None);
        assert_eq!(lost.add(seconds(6), 2, counted(40, 2)), None, "Envoy closes them");
        assert_eq!(lost.add(seconds(14), 2, counted(40, 2)), Some(38));
    }

    #[test]
    fn connections_that_envoy_has_closed_or_is_opening_are_not_lost() {
        let mut lost = connections();
        let counted = |envoy, kernel| move |_: &str| Some(Counted { envoy, kernel });
        assert_eq!(lost.add(seconds(0), 50, counted(0, 0)), None);
        for second in 1..9 {
            let established = usize::try_from(50 - second).unwrap();
            assert_eq!(lost.add(seconds(second), established, counted(49, 50)), None);
        }
        assert_eq!(lost.add(seconds(9), 3, counted(50, 3)), None);
        assert_eq!(lost.add(seconds(10), 3, counted(3, 3)), None, "Envoy noticed");
        assert_eq!(lost.add(seconds(11), 2, |_| None), None, "Envoy does not respond");
    }

    #[test]
    fn a_sum_of_counters_has_the_pipe_and_the_pool() {
        assert_eq!(sum("cluster.pipe.upstream_cx_active: 2\ncluster.warm.upstream_cx_active: 48\n"), Some(50));
        assert_eq!((sum(""), sum("cluster.pipe.upstream_cx_active: many\n")), (Some(0), None));
    }
}
