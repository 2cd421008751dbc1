//! Compares the link with `link:` while a box runs, from readings of connections that are many seconds apart.
//!
//! A warning that is wrong costs more than one that comes late. [`RULE`] holds what makes it sure:
//!
//! - A connection with a very short round trip does not cross a slow link. It may be one of a test, or of a neighbour.
//! - A queue makes round trips longer and never shorter, so the link is slower than configured only if nearly all
//!   connections say so.
//! - A connection that begins is slow on every link. Only transfers that fill the link over a whole interval show its
//!   rate, and several are needed, because a client may have a slow network of its own.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;
use std::{fmt, io};

use longhaul_config::{Link, Rate, Settings, show_duration};
use serde::{Deserialize, Serialize};

use super::estimate::{Estimate, per_second, percentile, suggest, two_digits};
use super::kernel::{Connection, ConnectionId, Kernel};
use super::proposal::{Direction, proposed_line};
use super::watched::Watched;

/// The conditions of a warning.
struct Rule {
    /// The time after which a reading no longer counts.
    window: Duration,
    /// The shortest round trip of a slow link, in microseconds.
    shortest_rtt_us: u32,
    /// The readings in a row that must show the same difference.
    readings: u32,
    /// The intervals with full transfers that a rate needs.
    full_intervals: usize,
    /// The connections of clients that a round trip needs, and the full transfers that an interval needs.
    of_clients: (usize, usize),
    /// The same between the ends of a pair, whose connections all cross the link.
    of_a_pair: (usize, usize),
    /// The percentile of round trips that must exceed the configured one for the link to be slower.
    low_percentile: usize,
    /// The factor between measured and configured values from which on they differ.
    factor: u64,
    /// The connections that are remembered.
    remembered: usize,
}

/// The conditions in force.
const RULE: Rule = Rule {
    window: Duration::from_mins(10),
    shortest_rtt_us: 1_000,
    readings: 3,
    full_intervals: 6,
    of_clients: (5, 5),
    of_a_pair: (1, 3),
    low_percentile: 10,
    factor: 2,
    remembered: 10_000,
};

/// A value of `link:` that is off by half or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Off {
    /// The measured value is below half of the configured one.
    Below,
    /// The measured value is above twice the configured one.
    Above,
}

/// The link as a running box sees it. Texts are in the notation of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noticed {
    /// The round-trip time without queueing. None if too few connections show it.
    pub(crate) rtt: Option<String>,
    /// The rate in the direction in which this box sends. None if the link was not filled long enough.
    pub(crate) rate: Option<String>,
    /// The key of that rate below `link`.
    pub(crate) direction: String,
    /// The difference, if there is one.
    pub(crate) misfit: Option<Misfit>,
}

impl Noticed {
    /// Returns the difference in words, unless `logged` has one that is like it. A link near the limit of a difference is
    /// logged once.
    #[must_use]
    pub fn news(&self, logged: Option<&Self>) -> Option<String> {
        let known = logged.and_then(|logged| logged.misfit.as_ref());
        let news = self.misfit.as_ref().filter(|misfit| !known.is_some_and(|known| known.is_like(misfit)))?;
        Some(news.to_string())
    }
}

/// A configured link that is off by half or more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Misfit {
    /// The values that differ, at least one.
    pub(crate) values: Vec<Differing>,
    /// The line for the configuration that fits.
    pub(crate) line: String,
}

/// A value of `link:` that differs from the measured one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Differing {
    /// Its key below `link`.
    pub key: String,
    /// The direction in which it differs.
    pub off: Off,
    /// The configured value.
    pub configured: String,
    /// The measured value.
    pub measured: String,
}

impl Misfit {
    /// Returns true if the same values differ in the same direction.
    fn is_like(&self, other: &Self) -> bool {
        let kinds = |misfit: &Self| misfit.values.iter().map(|one| (one.key.clone(), one.off)).collect::<Vec<_>>();
        kinds(self) == kinds(other)
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Differing { key, configured, measured, .. } in &self.values {
            write!(out, "`link.{key}` is {configured}, but {measured} was measured; ")?;
        }
        write!(out, "this line fits: `{}`", self.line)
    }
}

/// The readings of the last minutes.
#[derive(Debug)]
pub struct Passive {
    watched: Watched,
    kernel: Option<Kernel>,
    link: Link,
    direction: Direction,
    /// The connections and the full transfers that are needed.
    needed: (usize, usize),
    /// The connections of the window, with the time of their last reading and their shortest round trip.
    seen: HashMap<ConnectionId, (Duration, u32)>,
    before: HashMap<ConnectionId, Connection>,
    /// Rates of intervals with enough full transfers, in bits per second.
    full: VecDeque<(Duration, u64)>,
    last: Option<Duration>,
    /// The differences of the last readings, and the number of these.
    streak: (Differences, u32),
}

/// The round trip and the rate.
type Differences = [Option<Off>; 2];

impl Passive {
    /// Begins without readings.
    pub fn of(settings: &Settings) -> Self {
        Self {
            watched: Watched::of(settings),
            kernel: None,
            link: settings.link.clone(),
            direction: Direction::of(settings),
            needed: if settings.role.is_alone() { RULE.of_clients } else { RULE.of_a_pair },
            seen: HashMap::new(),
            before: HashMap::new(),
            full: VecDeque::new(),
            last: None,
            streak: ([None, None], 0),
        }
    }

    /// Returns true if `settings` have the same link and the same way to measure it.
    pub fn describes(&self, settings: &Settings) -> bool {
        (&self.link, &self.watched) == (&settings.link, &Watched::of(settings))
    }

    /// Reads the connections of now, at the time `at` since the start. `local` holds the addresses of this host.
    ///
    /// # Errors
    /// The kernel gives no figures.
    pub fn read(&mut self, at: Duration, local: &[IpAddr]) -> io::Result<Noticed> {
        if self.watched.is_nothing() {
            return Ok(Noticed::default());
        }
        let kernel = match self.kernel.take() {
            Some(kernel) => kernel,
            None => Kernel::open()?,
        };
        let mut connections = kernel.connections()?;
        self.kernel = Some(kernel);
        connections.retain(|connection| self.watched.includes(&connection.id, local));
        Ok(self.add(at, &connections))
    }

    /// Adds the connections that cross the link as they are at the time `at` since the start. Returns the link of now.
    fn add(&mut self, at: Duration, connections: &[Connection]) -> Noticed {
        let slow = |connection: &&Connection| connection.min_rtt_us.is_some_and(|rtt| rtt >= RULE.shortest_rtt_us);
        let connections: Vec<Connection> = connections.iter().filter(slow).copied().collect();
        self.remember(at, &connections);
        if let Some(last) = self.last.replace(at) {
            self.full.extend(self.interval(at.saturating_sub(last), &connections).map(|rate| (at, rate)));
        }
        self.full.retain(|(then, _)| at.saturating_sub(*then) < RULE.window);
        self.before = connections.into_iter().map(|connection| (connection.id, connection)).collect();
        self.judge()
    }

    fn remember(&mut self, at: Duration, connections: &[Connection]) {
        self.seen.retain(|_, (then, _)| at.saturating_sub(*then) < RULE.window);
        for connection in connections {
            let Some(rtt) = connection.min_rtt_us else { continue };
            if self.seen.len() < RULE.remembered || self.seen.contains_key(&connection.id) {
                self.seen.insert(connection.id, (at, rtt));
            }
        }
    }

    /// Returns the rate of all connections in an interval. None if too few of them filled the link from its beginning
    /// to its end.
    fn interval(&self, time: Duration, connections: &[Connection]) -> Option<u64> {
        let is_full = |connection: &Connection| !connection.app_limited && connection.delivery_rate > 0;
        let (mut delivered, mut full) = (0_u64, 0);
        for connection in connections {
            let Some(before) = self.before.get(&connection.id) else { continue };
            let fresh = connection.delivered.saturating_sub(before.delivered);
            delivered = delivered.saturating_add(fresh);
            full += usize::from(fresh > 0 && is_full(connection) && is_full(before));
        }
        (full >= self.needed.1).then(|| per_second(delivered, time))
    }

    fn judge(&mut self) -> Noticed {
        let rtts: Vec<u64> = self.seen.values().map(|(_, rtt)| u64::from(*rtt)).collect();
        let rates: Vec<u64> = self.full.iter().map(|(_, rate)| *rate).collect();
        let enough = rtts.len() >= self.needed.0;
        let of_rtts = |percent| percentile(&rtts, percent).filter(|_| enough);
        let rtt = of_rtts(50);
        // The best interval is the one in which the clients asked for most.
        let rate = percentile(&rates, 100).filter(|_| rates.len() >= RULE.full_intervals);
        let configured = self.direction.rate(&self.link);
        let configured_us = u64::try_from(self.link.rtt.as_micros()).unwrap_or(u64::MAX);
        let differences =
            [off(rtt, of_rtts(RULE.low_percentile), configured_us), off(rate, rate, configured.bits_per_second)];
        let readings = if self.streak.0 == differences { self.streak.1.saturating_add(1) } else { 1 };
        self.streak = (differences, readings);
        let noticed = Noticed {
            rtt: rtt.map(|rtt| show_duration(Duration::from_micros(two_digits(rtt)))),
            rate: rate.map(|rate| Rate { bits_per_second: two_digits(rate) }.to_string()),
            direction: self.direction.key().to_owned(),
            misfit: None,
        };
        let misfit = || {
            let known = |value: Option<u64>| match value {
                Some(value) => Estimate::Known { value, connections: rtts.len() },
                None => Estimate::TooFew { connections: rtts.len(), needed: self.needed.0 },
            };
            let better = suggest(known(rtt), known(rate), self.link.rtt, configured);
            let line = proposed_line(&self.link, self.direction, &better)?;
            let shown = [
                ("rtt", show_duration(self.link.rtt), &noticed.rtt),
                (self.direction.key(), configured.to_string(), &noticed.rate),
            ];
            let values = shown.into_iter().zip(differences).filter_map(|((key, configured, measured), off)| {
                Some(Differing { key: key.to_owned(), off: off?, configured, measured: measured.clone()? })
            });
            Some(Misfit { values: values.collect(), line })
        };
        let is_sure = differences != [None, None] && readings >= RULE.readings;
        let misfit = if is_sure { misfit() } else { None };
        Noticed { misfit, ..noticed }
    }
}

/// Compares a measured value with the configured one. `low` is the value that must be above twice the configured one.
fn off(value: Option<u64>, low: Option<u64>, configured: u64) -> Option<Off> {
    if value?.saturating_mul(RULE.factor) < configured {
        Some(Off::Below)
    } else {
        (low? > configured.saturating_mul(RULE.factor)).then_some(Off::Above)
    }
}

#[cfg(test)]
mod tests;
