//! Connections over the link that are gone while Envoy has them for open ones.
//!
//! Envoy does not read from an unused connection until a client needs it, and learns of its end by `EPOLLRDHUP` alone. libevent
//! passes that on only where no error came with it. A reset, or probes without a response, are errors. So the connection stays
//! in Envoy's pool, and the client that gets it is closed at once. The kernel no longer has it, and that is how a run notices.
//!
//! A connection of Multipath TCP stays open for `net.mptcp.close_timeout` after its last path has gone, because another path
//! may come. After a ground has lost power, none can: it knows none of its former connections. Requests on the pipe would
//! wait for all of this time, although new connections work.

use std::fmt;
use std::time::Duration;

use longhaul_config::{PipeTransport, Role, Settings};
use longhaul_derive::{Carrier, Derived, MultipathUse};
use longhaul_observe::Endpoint;
use longhaul_render::Emptied;

use super::probe::stats;

/// The number of looks in a row that find a connection missing. One look may fall between an end and Envoy's notice of it.
const LOOKS: u32 = 2;
/// The shortest time between two reports. After one, Envoy closes what it has and opens others.
const PAUSE: Duration = Duration::from_secs(10);

/// The connections that are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// So many unused ones for clients' bytes.
    Unused(usize),
    /// Ones of Multipath TCP that have no path. The pipe may be one of them.
    Pathless {
        number: usize,
        /// True if streams of the pipe carry clients' bytes, so that unused ones are gone with it.
        with_streams: bool,
    },
    /// Unused streams of the pipe to one of several grounds. Requests use another one now.
    ToFormerGround,
}

impl Lost {
    /// Returns the number of times that each pool is emptied, with this time.
    pub(super) fn emptied_after(self, before: Emptied) -> Emptied {
        let (warm, pipe) = match self {
            Self::Unused(_) | Self::ToFormerGround => (true, false),
            Self::Pathless { with_streams, .. } => (with_streams, true),
        };
        Emptied { warm: before.warm.saturating_add(u32::from(warm)), pipe: before.pipe.saturating_add(u32::from(pipe)) }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unused(number) => write!(f, "{number} unused connections to the ground are gone; opening others"),
            Self::Pathless { number, .. } => write!(
                f,
                "{number} connections to the ground lost all their paths while it responds on others; opening new ones"
            ),
            Self::ToFormerGround => f.write_str("unused streams lead to the ground before; opening others"),
        }
    }
}

/// The decision when to report lost connections.
#[derive(Debug, Default)]
struct Looks {
    /// Those in a row that found some.
    number: u32,
    reported_at: Option<Duration>,
}

impl Looks {
    /// Takes the number of lost connections. Returns it when it is time to report them.
    fn add(&mut self, at: Duration, lost: usize) -> Option<usize> {
        self.number = if lost > 0 { self.number.saturating_add(1) } else { 0 };
        let rests = self.reported_at.is_some_and(|before| at.saturating_sub(before) < PAUSE);
        if self.number < LOOKS || rests {
            return None;
        }
        *self = Self { number: 0, reported_at: Some(at) };
        Some(lost)
    }
}

/// The watch of a remote for connections of Multipath TCP without a path.
#[derive(Debug, Default)]
pub(super) struct LostPaths {
    /// The number of established paths at the last reading.
    established: usize,
    /// True since some have ended, until every connection has a path.
    suspects: bool,
    /// The connections without a path that were reported and are not closed yet, because clients wait on them.
    known: usize,
    with_streams: bool,
    looks: Looks,
}

impl LostPaths {
    /// Returns the watch for a box. None: it opens no connections of Multipath TCP.
    pub(super) fn of(derived: &Derived) -> Option<Self> {
        let with_streams = derived.warm.is_some_and(|warm| warm.carrier == Carrier::Streams);
        matches!(derived.multipath, MultipathUse::Opens(_)).then(|| Self { with_streams, ..Self::default() })
    }

    /// Returns true if the counts of one are right for the other.
    pub(super) fn watches_the_same(&self, other: &Self) -> bool {
        self.with_streams == other.with_streams
    }

    /// Takes a reading with so many established paths. Returns the number of connections without one when it is time to
    /// report them. `count` is called only after some paths have ended. While the ground responds on no connection, the link
    /// may be away, and the paths may come back with it.
    pub(super) fn add(
        &mut self,
        at: Duration,
        established: usize,
        count: impl FnOnce() -> Option<usize>,
    ) -> Option<Lost> {
        self.suspects |= established < self.established;
        self.established = established;
        if !self.suspects {
            return None;
        }
        let lost = count().unwrap_or(0);
        self.suspects = lost > 0;
        self.known = self.known.min(lost);
        let found = if established > 0 { lost.saturating_sub(self.known) } else { 0 };
        let number = self.looks.add(at, found)?;
        self.known = lost;
        Some(Lost::Pathless { number, with_streams: self.with_streams })
    }
}

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
    looks: Looks,
}

impl LostConnections {
    /// Returns the comparison for a box. None: it opens no connections for clients in advance, or they are streams of the pipe.
    pub(super) fn of(settings: &Settings, derived: &Derived) -> Option<Self> {
        let Role::Remote(remote) = &settings.role else { return None };
        let warm = derived.warm?;
        if warm.carrier != Carrier::Connections || warm.number == 0 {
            return None;
        }
        let counters = match remote.transport {
            PipeTransport::H3 => r"^cluster\.warm\.upstream_cx_active$",
            PipeTransport::H2 => r"^cluster\.(pipe|warm)\.upstream_cx_active$",
        };
        Some(Self { counters, established: 0, looks: Looks::default() })
    }

    /// Returns true if the counts of one are right for the other.
    pub(super) fn watches_the_same(&self, other: &Self) -> bool {
        self.counters == other.counters
    }

    /// Takes a reading with so many established connections. Returns the number of lost ones when it is time to report them.
    /// `count` is called only after some have ended. The connection of the health check is in no counter of Envoy, so it may
    /// hide one lost connection.
    pub(super) fn add(
        &mut self,
        at: Duration,
        established: usize,
        count: impl FnOnce(&str) -> Option<Counted>,
    ) -> Option<Lost> {
        let fewer = established < self.established;
        self.established = established;
        if !fewer && self.looks.number == 0 {
            return None;
        }
        let lost = count(self.counters).map_or(0, |counted| counted.envoy.saturating_sub(counted.kernel));
        self.looks.add(at, lost).map(Lost::Unused)
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
        LostConnections { counters: "", established: 0, looks: Looks::default() }
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
        assert_eq!(lost.add(seconds(3), 3, counted(40, 3)), Some(Lost::Unused(37)));
        assert_eq!(lost.add(seconds(4), 3, silent), None, "they are reported");
        assert_eq!(lost.add(seconds(5), 2, counted(40, 2)), None);
        assert_eq!(lost.add(seconds(6), 2, counted(40, 2)), None, "Envoy closes them");
        assert_eq!(lost.add(seconds(14), 2, counted(40, 2)), Some(Lost::Unused(38)));
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
    fn connections_without_a_path_are_reported_once_the_ground_responds_on_another() {
        let pathless = |number| Lost::Pathless { number, with_streams: false };
        let mut lost = LostPaths::default();
        let silent = || panic!("no path ended, so nothing is counted");
        assert_eq!(lost.add(seconds(0), 4, silent), None);
        assert_eq!(lost.add(seconds(1), 5, silent), None);
        assert_eq!(lost.add(seconds(2), 3, || Some(0)), None, "a link is away, and each connection has another path");
        assert_eq!(lost.add(seconds(3), 3, silent), None);
        for second in 4..9 {
            assert_eq!(lost.add(seconds(second), 0, || Some(3)), None, "the last link is away");
        }
        assert_eq!(lost.add(seconds(9), 1, || Some(3)), None, "paths may follow");
        assert_eq!(lost.add(seconds(10), 2, || Some(2)), Some(pathless(2)));
        for second in 11..40 {
            assert_eq!(lost.add(seconds(second), 2, || Some(2)), None, "clients wait on them");
        }
        assert_eq!(lost.add(seconds(40), 2, || Some(3)), None);
        assert_eq!(lost.add(seconds(41), 2, || Some(3)), Some(pathless(1)));
        assert_eq!(lost.add(seconds(42), 2, || Some(0)), None);
        assert_eq!(lost.add(seconds(43), 2, silent), None);
    }

    #[test]
    fn only_pools_with_lost_connections_are_emptied() {
        let before = Emptied { warm: 2, pipe: 1 };
        let after = |lost: Lost| lost.emptied_after(before);
        assert_eq!(after(Lost::ToFormerGround), after(Lost::Unused(3)));
        assert_eq!(after(Lost::Unused(9)), Emptied { warm: 3, pipe: 1 });
        assert_eq!(after(Lost::Pathless { number: 1, with_streams: false }), Emptied { warm: 2, pipe: 2 });
        assert_eq!(after(Lost::Pathless { number: 1, with_streams: true }), Emptied { warm: 3, pipe: 2 });
    }

    #[test]
    fn a_sum_of_counters_has_the_pipe_and_the_pool() {
        assert_eq!(sum("cluster.pipe.upstream_cx_active: 2\ncluster.warm.upstream_cx_active: 48\n"), Some(50));
        assert_eq!((sum(""), sum("cluster.pipe.upstream_cx_active: many\n")), (Some(0), None));
    }
}
