//! The reason why the other end of the link does not respond.
//!
//! Envoy retries without a word. While the link is down, the end that dials tries the handshake of `longhaul pair check`
//! itself, and logs its result when it changes.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use longhaul_config::{Role, Settings};
use longhaul_observe::Endpoint;

use super::log::Level;
use super::probe::stats;
use super::say;
use crate::pair;

/// The interval of attempts during an outage. An attempt costs the link a handshake.
const EVERY: Duration = Duration::from_mins(1);
/// The interval of the first attempts. An outage may just begin, and its reason come a moment later.
const AT_FIRST: Duration = Duration::from_secs(4);
/// The number of those.
const FIRST: u32 = 3;

/// The interval of looks at Envoy's counters of handshakes.
const LOOK: Duration = Duration::from_secs(1);
/// The time without a further failed handshake after which nothing is known to be wrong. Envoy tries all the time.
const REST: Duration = Duration::from_secs(15);

/// Handshakes with the ground that failed, by Envoy's counters. A remote whose connections stand notices a wrong
/// certificate so, before it has none left.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    looked: Option<Instant>,
    /// The counters of the last look: handshakes that succeeded, and that failed.
    before: Option<(u64, u64)>,
    /// The last failure without a success after it.
    failed: Option<Instant>,
}

impl Refusals {
    /// Returns true if handshakes fail. Call it often.
    pub(super) fn tend(&mut self, settings: &Settings, admin: Option<&Endpoint>) -> bool {
        let (Role::Remote(_), Some(admin)) = (&settings.role, admin) else {
            *self = Self::default();
            return false;
        };
        if self.looked.is_none_or(|at| at.elapsed() >= LOOK) {
            self.looked = Some(Instant::now());
            if let Some(counts) =
                stats(admin, r"^cluster\.(pipe|warm)\.ssl\.(handshake|connection_error|fail_verify_.*)$")
            {
                self.add(counted(&counts), Instant::now());
            }
        }
        self.stands(Instant::now())
    }

    fn add(&mut self, counts: (u64, u64), now: Instant) {
        let Some(before) = self.before.replace(counts) else { return };
        if counts.0 != before.0 {
            self.failed = None;
        } else if counts.1 > before.1 {
            self.failed = Some(now);
        }
    }

    fn stands(&self, now: Instant) -> bool {
        self.failed.is_some_and(|failed| now.duration_since(failed) < REST)
    }
}

/// Returns the handshakes that succeeded, and that failed.
fn counted(stats: &str) -> (u64, u64) {
    let of = |is_good: bool| {
        let lines = stats.lines().filter_map(|line| line.rsplit_once(": "));
        let chosen = lines.filter(|(name, _)| name.ends_with(".handshake") == is_good);
        chosen.filter_map(|(_, value)| value.trim().parse::<u64>().ok()).sum()
    };
    (of(true), of(false))
}

/// The present outage, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Diagnosis {
    tried_at: Option<Instant>,
    attempts: u32,
    attempt: Option<Receiver<Option<String>>>,
    logged: Option<String>,
}

impl Diagnosis {
    /// Tries the handshake now and then while the other end is `away`. Call it often.
    pub(super) fn tend(&mut self, settings: &Settings, away: bool) {
        if !away {
            *self = Self::default();
            return;
        }
        match self.attempt.as_ref().map(Receiver::try_recv) {
            Some(Ok(found)) => {
                self.attempt = None;
                self.log(found);
            }
            Some(Err(TryRecvError::Disconnected)) => self.attempt = None,
            None if self.is_due() => self.attempt(settings.clone()),
            Some(Err(TryRecvError::Empty)) | None => {}
        }
    }

    /// Returns the reason of the present outage, as the last attempt found it.
    pub(super) fn found(&self) -> Option<&str> {
        self.logged.as_deref()
    }

    fn is_due(&self) -> bool {
        let pause = if self.attempts < FIRST { AT_FIRST } else { EVERY };
        self.tried_at.is_none_or(|at| at.elapsed() >= pause)
    }

    fn attempt(&mut self, settings: Settings) {
        self.tried_at = Some(Instant::now());
        self.attempts += 1;
        let (sender, receiver) = channel();
        let spawned = thread::Builder::new().name("diagnosis".to_owned()).spawn(move || {
            // If the run has ended meanwhile, nobody waits for the result.
            let _ = sender.send(pair::problem(&settings));
        });
        self.attempt = spawned.ok().map(|_| receiver);
    }

    fn log(&mut self, found: Option<String>) {
        if found == self.logged {
            return;
        }
        if let Some(problem) = &found {
            say(Level::Warning, problem);
        }
        self.logged = found;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes_fail_until_one_succeeds() {
        let mut refusals = Refusals::default();
        let start = Instant::now();
        let mut add = |good, failed, s| {
            let now = start + Duration::from_secs(s);
            refusals.add((good, failed), now);
            refusals.stands(now)
        };
        assert!(!add(5, 3, 0), "from before");
        assert!(add(5, 4, 1) && add(5, 4, 2));
        assert!(!add(6, 5, 3), "one succeeded");
        assert!(!add(1, 0, 4), "another Envoy");
        assert!(add(1, 2, 5) && add(1, 2, 19));
        assert!(!add(1, 2, 20), "nobody tries any more");
        let stats = "cluster.pipe.ssl.handshake: 4\ncluster.pipe.ssl.connection_error: 2\ncluster.warm.ssl.fail_verify_san: 1\n";
        assert_eq!(counted(stats), (4, 3));
    }
}
