//! Decides whether something hinders Multipath TCP over a link. It knows no clock.
//!
//! A firewall may remove the options of Multipath TCP, or drop packets with them. Then the connections over this link are
//! plain TCP, or they have no path over it. Users notice when a link fails, so it has to show before.

use std::ops::{Add, Sub};
use std::time::Duration;

/// The time for which a sign has to stand. A link that comes back has no paths for a moment, and in a cut the kernel may open
/// plain TCP.
const PATIENCE: Duration = Duration::from_secs(15);

/// A fault of the connections with the ground over a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum PathFault {
    /// They are plain TCP.
    #[error(
        "its connections are plain TCP, and end with it. The ground lacks `split.multipath: on` or Multipath TCP, or a firewall on the way removes the options"
    )]
    Plain,
    /// There are none, and other links have some.
    #[error(
        "no connection can move to it. A firewall on the way removes the options of Multipath TCP, or drops packets with them"
    )]
    Unused,
}

/// The connections with the ground over a link, or over several.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Paths {
    /// Those of Multipath TCP.
    pub multipath: u32,
    /// Those of plain TCP, which end with the link.
    pub plain: u32,
}

impl Paths {
    /// Returns the fault that these connections are a sign of. `others` are those over the other links.
    fn sign(self, others: Self) -> Option<PathFault> {
        if self.plain > self.multipath {
            Some(PathFault::Plain)
        } else if self.multipath == 0 && others.multipath > 0 {
            Some(PathFault::Unused)
        } else {
            None
        }
    }
}

impl Add for Paths {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { multipath: self.multipath + other.multipath, plain: self.plain + other.plain }
    }
}

impl Sub for Paths {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            multipath: self.multipath.saturating_sub(other.multipath),
            plain: self.plain.saturating_sub(other.plain),
        }
    }
}

/// Judges one link.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct PathJudge {
    /// The sign that stands, and the time of its beginning.
    sign: Option<(PathFault, Duration)>,
}

impl PathJudge {
    /// Adds a look at a link. Returns the fault, if a sign of it has stood for long enough. A link that does not `work` has
    /// none.
    pub(super) fn look(&mut self, now: Duration, works: bool, own: Paths, others: Paths) -> Option<PathFault> {
        let sign = own.sign(others).filter(|_| works);
        self.sign = sign.map(|sign| match self.sign {
            Some((before, since)) if before == sign => (sign, since),
            _ => (sign, now),
        });
        self.sign.filter(|(_, since)| now.saturating_sub(*since) >= PATIENCE).map(|(fault, _)| fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Paths = Paths { multipath: 0, plain: 0 };
    const WELL: Paths = Paths { multipath: 9, plain: 0 };
    const PLAIN: Paths = Paths { multipath: 1, plain: 8 };

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_fault_is_one_that_stands_for_longer_than_a_cut() {
        for (own, others, fault) in [
            (WELL, WELL, None),
            (NONE, NONE, None),
            (PLAIN, NONE, Some(PathFault::Plain)),
            (NONE, WELL, Some(PathFault::Unused)),
            // What hinders the other link is no fault of this one.
            (NONE, Paths { plain: 9, ..NONE }, None),
        ] {
            let mut judge = PathJudge::default();
            assert_eq!(judge.look(s(0), true, own, others), None);
            assert_eq!(judge.look(s(14), true, own, others), None);
            assert_eq!(judge.look(s(15), true, own, others), fault, "{own:?} beside {others:?}");
            assert_eq!(judge.look(s(16), false, own, others), None, "it is down");
            assert_eq!(judge.look(s(17), true, own, others), None);
        }
    }

    #[test]
    fn another_sign_begins_anew() {
        let mut judge = PathJudge::default();
        assert_eq!(judge.look(s(0), true, NONE, WELL), None);
        assert_eq!(judge.look(s(20), true, PLAIN, WELL), None);
        assert_eq!(judge.look(s(35), true, PLAIN, WELL), Some(PathFault::Plain));
        assert_eq!((WELL + PLAIN) - PLAIN, WELL);
    }
}
