//! Judges whether a link works: signs and times in, the next step out. It knows no clock and no network.
//!
//! Bytes that cross a link show that it works, and cost nothing. A link without them is probed. It is dead once two probes
//! and the time of its plan have passed without a sign. It works again once it has responded for a while, and a link
//! that died several times within minutes has to respond for longer.

use std::collections::VecDeque;
use std::time::Duration;

use longhaul_derive::LinkPlan;

/// The shortest silence after which a link is probed, and the shortest time between probes.
const QUIET: Duration = Duration::from_millis(300);
/// Probes without a response after which a link may be dead. One may be lost on a link that works.
const PROBES: u32 = 2;
/// The time between probes of a dead link, at first and later.
const DEAD_PROBE: Duration = Duration::from_secs(1);
const DEAD_PROBE_LATER: Duration = Duration::from_secs(5);
const LATER: Duration = Duration::from_secs(30);
/// The time for which a dead link has to respond before it is used again, for its first death.
const STEADY: Duration = Duration::from_secs(3);
/// The most of it, however often it died.
const MOST_STEADY: Duration = Duration::from_mins(2);
/// Deaths within this time count.
const MEMORY: Duration = Duration::from_mins(5);
const MOST_DEATHS: usize = 8;

/// The times of a link's watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    rtt: Duration,
    dead_after: Duration,
    idle_probe: Duration,
}

impl Times {
    pub(super) fn of(plan: &LinkPlan) -> Self {
        Self { rtt: plan.link.rtt, dead_after: plan.dead_after, idle_probe: plan.idle_probe }
    }

    /// Returns the silence after which the link is probed.
    fn quiet(self) -> Duration {
        self.rtt.max(QUIET)
    }

    /// Returns the time in which a probe gets its response. The next one follows only then.
    fn answer(self) -> Duration {
        (self.rtt * 6 / 5).max(QUIET)
    }
}

/// The signs since the last look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a sign of its own")]
pub(super) struct Signs {
    /// The device has an address.
    pub present: bool,
    /// Bytes of connections crossed the link.
    pub progress: bool,
    /// Bytes wait for an acknowledgement.
    pub waiting: bool,
    /// A probe got a response.
    pub answered: bool,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Wait,
    /// Send a probe.
    Probe,
    /// The link died: use it no more. It was silent for this time.
    Died(Duration),
    /// The link works again, after this time.
    Restored(Duration),
}

/// The state of one link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judge {
    times: Times,
    /// The time of the last sign of life.
    last_sign: Duration,
    /// The time of the first and of the last probe since then, and their number.
    probes: Option<(Duration, Duration, u32)>,
    /// The time of death, and since when it has responded again.
    dead: Option<(Duration, Option<Duration>)>,
    deaths: VecDeque<Duration>,
}

impl Judge {
    /// Begins with a link that is believed to work, and is probed at once.
    pub(super) fn new(times: Times, now: Duration) -> Self {
        Self { times, last_sign: now, probes: None, dead: None, deaths: VecDeque::new() }
    }

    /// Returns true if the link is used.
    pub(super) fn is_alive(&self) -> bool {
        self.dead.is_none()
    }

    /// Returns the time of its death. None while it is used.
    pub(super) fn died(&self) -> Option<Duration> {
        self.dead.map(|(died, _)| died)
    }

    /// Takes the signs at `now`, and returns the next step. Call it several times a second.
    pub(super) fn look(&mut self, now: Duration, signs: Signs) -> Step {
        // Bytes that were under way when the link died are no sign that it works again.
        let sign = signs.present && (signs.answered || signs.progress && self.dead.is_none());
        match self.dead {
            None => self.look_at_living(now, signs, sign),
            Some((died, since)) => self.look_at_dead(now, signs.present, sign, died, since),
        }
    }

    fn look_at_living(&mut self, now: Duration, signs: Signs, sign: bool) -> Step {
        if sign {
            self.last_sign = now;
            self.probes = if signs.answered { Some((now, now, 0)) } else { None };
            return Step::Wait;
        }
        let silent = now.saturating_sub(self.last_sign);
        if !signs.present {
            return self.die(now, silent);
        }
        let quiet = self.times.quiet();
        match self.probes {
            // The link carried bytes, and carries none any more.
            None if silent >= quiet => self.probe(now, now, 1),
            None => Step::Wait,
            // A probe got a response. Nothing is wrong until bytes wait, or until the next probe is due.
            Some((_, last, 0)) => {
                let pause = if signs.waiting { quiet } else { self.times.idle_probe };
                if now.saturating_sub(last.max(self.last_sign)) >= pause { self.probe(now, now, 1) } else { Step::Wait }
            }
            Some((first, last, sent)) => {
                let since_first = now.saturating_sub(first) + quiet.min(self.times.dead_after);
                let is_dead = sent >= PROBES && silent >= self.times.dead_after && since_first >= self.times.dead_after;
                if is_dead {
                    self.die(now, silent)
                } else if now.saturating_sub(last) > self.times.answer() {
                    self.probe(first, now, sent.saturating_add(1))
                } else {
                    Step::Wait
                }
            }
        }
    }

    fn look_at_dead(
        &mut self,
        now: Duration,
        present: bool,
        sign: bool,
        died: Duration,
        since: Option<Duration>,
    ) -> Step {
        let last = self.probes.map_or(died, |(_, last, _)| last);
        // A response is late by a round trip, and one may be lost.
        let missed = now.saturating_sub(self.last_sign) > DEAD_PROBE * 2 + self.times.dead_after;
        let since = match since {
            None => sign.then_some(now),
            Some(_) if missed || !present => None,
            kept => kept,
        };
        if sign {
            self.last_sign = now;
        }
        self.dead = Some((died, since));
        if sign && since.is_some_and(|since| now.saturating_sub(since) >= self.steady()) {
            self.dead = None;
            self.probes = Some((now, now, 0));
            return Step::Restored(now.saturating_sub(died));
        }
        let pause = if since.is_some() || now.saturating_sub(died) < LATER { DEAD_PROBE } else { DEAD_PROBE_LATER };
        if present && now.saturating_sub(last) >= pause { self.probe(now, now, 1) } else { Step::Wait }
    }

    fn probe(&mut self, first: Duration, now: Duration, sent: u32) -> Step {
        self.probes = Some((first, now, sent));
        Step::Probe
    }

    fn die(&mut self, now: Duration, silent: Duration) -> Step {
        self.dead = Some((now, None));
        self.probes = None;
        self.deaths.push_back(now);
        while self.deaths.len() > MOST_DEATHS || self.deaths.front().is_some_and(|at| *at + MEMORY < now) {
            self.deaths.pop_front();
        }
        Step::Died(silent)
    }

    /// Returns the time for which the link has to respond. It doubles with each death that is remembered.
    fn steady(&self) -> Duration {
        let deaths = u32::try_from(self.deaths.len().saturating_sub(1)).unwrap_or(u32::MAX);
        STEADY.saturating_mul(2_u32.saturating_pow(deaths)).min(MOST_STEADY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(100);
    const IDLE: Duration = Duration::from_mins(4);

    fn times(rtt_ms: u64) -> Times {
        let rtt = Duration::from_millis(rtt_ms);
        Times { rtt, dead_after: Duration::from_secs(1) + rtt * 2, idle_probe: IDLE }
    }

    /// A link whose probes have a response after a round trip, unless it is cut.
    struct Emulated {
        judge: Judge,
        now: Duration,
        under_way: VecDeque<Duration>,
        probes: u32,
    }

    impl Emulated {
        fn new(rtt_ms: u64) -> Self {
            let judge = Judge::new(times(rtt_ms), Duration::ZERO);
            Self { judge, now: Duration::ZERO, under_way: VecDeque::new(), probes: 0 }
        }

        /// Runs for a time. Returns the steps but probes, each with its time.
        fn run(&mut self, time: Duration, works: bool, progress: bool, waiting: bool) -> Vec<(Duration, Step)> {
            let (end, mut steps) = (self.now + time, Vec::new());
            while self.now < end {
                self.now += TICK;
                let answered = self.under_way.front().is_some_and(|at| *at <= self.now);
                if answered {
                    self.under_way.pop_front();
                }
                let signs = Signs { present: true, progress, waiting, answered: answered && works };
                match self.judge.look(self.now, signs) {
                    Step::Wait => {}
                    Step::Probe => {
                        self.probes += 1;
                        if works {
                            self.under_way.push_back(self.now + self.judge.times.rtt);
                        }
                    }
                    other => steps.push((self.now, other)),
                }
            }
            steps
        }
    }

    fn s(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_cut_in_a_download_is_found_after_a_second_and_two_round_trips() {
        for (rtt_ms, most) in [(40, 1.3), (80, 1.4), (600, 2.5), (1000, 3.4)] {
            let mut link = Emulated::new(rtt_ms);
            assert_eq!(link.run(s(10.0), true, true, false), []);
            assert_eq!(link.probes, 0, "bytes are sign enough");
            let steps = link.run(s(8.0), false, false, false);
            let [(at, Step::Died(_))] = steps[..] else { panic!("{steps:?}") };
            let took = at.saturating_sub(s(10.0));
            assert!(took <= s(most) && took >= times(rtt_ms).dead_after, "{rtt_ms} ms: {took:?}");
        }
    }

    #[test]
    fn a_slow_link_that_responds_is_not_dead_and_an_idle_one_costs_next_to_nothing() {
        for rtt_ms in [40, 600, 1000, 2000] {
            let mut link = Emulated::new(rtt_ms);
            link.run(s(5.0), true, true, false);
            assert_eq!(link.run(s(3600.0), true, false, false), [], "{rtt_ms} ms");
            assert!((14..=24).contains(&link.probes), "{rtt_ms} ms: {} probes in an hour", link.probes);
        }
    }

    #[test]
    fn a_lost_probe_is_no_death() {
        let mut link = Emulated::new(80);
        link.run(s(5.0), true, false, false);
        assert_eq!(link.run(s(0.5), false, false, true), []);
        assert_eq!(link.run(s(60.0), true, false, true), []);
        assert!(link.judge.is_alive());
    }

    #[test]
    fn a_link_is_restored_once_it_has_responded_for_a_while_and_later_each_time() {
        let mut link = Emulated::new(80);
        let mut waits = Vec::new();
        for _ in 0..4 {
            link.run(s(5.0), true, true, false);
            assert!(matches!(link.run(s(8.0), false, false, true)[..], [(_, Step::Died(_))]));
            let back = link.now;
            let steps = link.run(s(40.0), true, false, false);
            let [(at, Step::Restored(_))] = steps[..] else { panic!("{steps:?}") };
            waits.push(at.saturating_sub(back).as_secs());
        }
        assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "{waits:?}");
        assert!((3..=5).contains(&waits[0]), "{waits:?}");
    }

    #[test]
    fn a_link_that_flaps_every_few_seconds_is_left_alone() {
        let mut link = Emulated::new(80);
        let mut changes = 0;
        for _ in 0..30 {
            changes += link.run(s(10.0), true, false, false).len();
            changes += link.run(s(10.0), false, false, true).len();
        }
        assert!(changes <= 8, "{changes} changes in ten minutes");
    }

    #[test]
    fn a_device_without_an_address_is_dead_at_once() {
        let mut judge = Judge::new(times(600), Duration::ZERO);
        assert!(matches!(judge.look(s(0.1), Signs::default()), Step::Died(_)));
        assert_eq!(judge.look(s(5.0), Signs::default()), Step::Wait, "nothing to probe with");
        let present = Signs { present: true, ..Signs::default() };
        assert_eq!(judge.look(s(6.0), present), Step::Probe);
    }
}
