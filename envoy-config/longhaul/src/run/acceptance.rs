//! Decides when the files are tried, and remembers the reason why the present ones are not in force.

use std::time::{Duration, Instant};

/// The waits before files that a child refused are tried again. They double from the first to the longest. Each attempt puts
/// the files in force for a moment, and the old ones back.
const FIRST_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// A change that is not in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    /// The reason.
    pub(super) why: String,
    pub(super) by: Refuser,
}

/// The part that refused a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refuser {
    /// This program, before it put anything in force, or the disk.
    Run,
    /// Envoy, once the files were in place.
    Envoy,
    /// CoreDNS, once the files were in place.
    Names,
    /// A signal that ends the run.
    Signal,
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self { why, by: Refuser::Run }
    }
}

impl Refuser {
    /// Returns true for a child that was asked.
    pub(super) const fn is_child(self) -> bool {
        matches!(self, Self::Envoy | Self::Names)
    }
}

/// How often each child that may refuse files has died.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Deaths {
    pub(super) envoy: u32,
    pub(super) names: u32,
}

/// The acceptance of the present files.
#[derive(Debug, Default)]
pub(super) struct Acceptance {
    refusal: Option<Refused>,
    /// The earliest time of the next attempt, and the wait before it. None: the next check tries again.
    again: Option<(Instant, Duration)>,
    /// The deaths until the last check.
    deaths: Deaths,
}

impl Acceptance {
    /// Returns true if the files are to be tried: they `changed`, or the cache `has_room` again. A change that was refused
    /// because a file was missing may succeed once the file exists, although no input has changed.
    pub(super) fn is_to_be_tried(&mut self, changed: bool, has_room: bool, now: Instant) -> bool {
        if changed || has_room {
            self.again = None;
            return true;
        }
        self.refusal.is_some() && self.again.is_none_or(|(at, _)| at <= now)
    }

    /// Tries refused files again at the next check.
    pub(super) fn try_again(&mut self) {
        self.again = None;
    }

    /// Tries refused files again if the child that refused them has died since the last call. The one that took its place may
    /// accept them. The death of the other child says nothing: an Envoy that dies again and again would try files that CoreDNS
    /// refuses each time, and wait for the refusal before it starts.
    pub(super) fn follow_deaths(&mut self, deaths: Deaths) {
        let before = std::mem::replace(&mut self.deaths, deaths);
        let has_died = match self.refusal.as_ref().map(|refused| refused.by) {
            Some(Refuser::Envoy) => deaths.envoy != before.envoy,
            Some(Refuser::Names) => deaths.names != before.names,
            Some(Refuser::Run | Refuser::Signal) | None => false,
        };
        if has_died {
            self.try_again();
        }
    }

    /// Records that the files are in force.
    pub(super) fn accepted(&mut self) {
        (self.refusal, self.again) = (None, None);
    }

    /// Records that the files are not in force. Returns true if the reason is new.
    pub(super) fn refused(&mut self, refused: &Refused, now: Instant) -> bool {
        self.again = refused.by.is_child().then(|| {
            let wait = self.again.map_or(FIRST_WAIT, |(_, wait)| (wait * 2).min(LONGEST_WAIT));
            (now + wait, wait)
        });
        let is_new = self.refusal.as_ref().map(|known| &known.why) != Some(&refused.why);
        self.refusal = Some(refused.clone());
        is_new
    }

    /// Returns true if the present files are not in force.
    pub(super) fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tries(by: Refuser, hours: u32) -> u32 {
        let (mut acceptance, mut now, mut tries) = (Acceptance::default(), Instant::now(), 0);
        let refused = Refused { why: "no".to_owned(), by };
        acceptance.refused(&refused, now);
        for _ in 0..hours * 120 {
            now += Duration::from_secs(30);
            if acceptance.is_to_be_tried(false, false, now) {
                tries += 1;
                assert!(!acceptance.refused(&refused, now), "the reason is known");
            }
        }
        tries
    }

    #[test]
    fn a_child_is_asked_again_with_longer_waits_and_a_missing_file_at_every_check() {
        assert_eq!(tries(Refuser::Run, 1), 120);
        assert_eq!(tries(Refuser::Names, 1), 6);
        assert_eq!(tries(Refuser::Envoy, 10), 7 + 8);
    }

    #[test]
    fn a_change_or_a_request_does_not_wait() {
        let now = Instant::now();
        let refused = Refused { why: "no".to_owned(), by: Refuser::Names };
        let mut acceptance = Acceptance::default();
        assert!(!acceptance.is_to_be_tried(false, false, now));
        acceptance.refused(&refused, now);
        assert!(!acceptance.is_to_be_tried(false, false, now) && acceptance.is_to_be_tried(true, false, now));
        acceptance.refused(&refused, now);
        acceptance.try_again();
        assert!(acceptance.is_to_be_tried(false, false, now));
        acceptance.refused(&refused, now);
        for (deaths, expected) in
            [(Deaths::default(), false), (Deaths { envoy: 1, names: 0 }, false), (Deaths { envoy: 1, names: 1 }, true)]
        {
            acceptance.follow_deaths(deaths);
            assert_eq!(acceptance.is_to_be_tried(false, false, now), expected, "{deaths:?}");
        }
        acceptance.refused(&Refused { by: Refuser::Envoy, ..refused }, now);
        acceptance.follow_deaths(Deaths { envoy: 1, names: 2 });
        assert!(!acceptance.is_to_be_tried(false, false, now));
        acceptance.follow_deaths(Deaths { envoy: 2, names: 2 });
        assert!(acceptance.is_to_be_tried(false, false, now));
    }
}
