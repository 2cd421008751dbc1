//! Estimates the link from samples of its connections.
//!
//! The minimum of a connection's round-trip time is the link's, plus the client's own network. A connection with little
//! traffic may have met a queue each time, so the lower quartile over connections counts. It still ignores the few
//! clients that are elsewhere.
//!
//! A delivery rate is a lower bound of the link's rate, because connections share the link. It counts if the network
//! limited it, and not the sender's lack of data. Several connections at once fill the link together, so the sum of
//! their delivered bytes over a second is a lower bound, too. The larger bound is the estimate.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use longhaul_config::Rate;
use serde::Serialize;

use super::kernel::{Connection, ConnectionId};

/// The time over which delivered bytes are summed.
const WINDOW: Duration = Duration::from_secs(1);
/// The share of minimum round-trip times that an estimate exceeds, in percent.
const LOWER_QUARTILE: usize = 25;
/// The share of rates that an estimate exceeds, in percent. The highest ones are bursts of acknowledgements.
const HIGH: usize = 90;
/// A measured value replaces a configured one from this ratio on, in percent.
const FITS_UP_TO: u64 = 125;

/// An estimate with the number of connections behind it, or their lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Estimate {
    /// Enough connections agree on it.
    Known {
        /// Microseconds, or bits per second.
        value: u64,
        /// The connections.
        connections: usize,
    },
    /// Too few connections for an estimate.
    TooFew {
        /// The connections that say something about it.
        connections: usize,
        /// The connections that are needed.
        needed: usize,
    },
}

/// The link as the connections show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Measured {
    /// The connections that were seen.
    pub connections: usize,
    /// The round-trip time without queueing, in microseconds.
    pub rtt_us: Estimate,
    /// The rate in the direction in which this box sends, in bits per second.
    pub rate: Estimate,
    /// The segments that were sent.
    pub segments: u64,
    /// The segments that were sent again.
    pub sent_again: u64,
}

/// Samples of all connections over some time.
#[derive(Debug, Default)]
pub(super) struct Samples {
    connections: HashMap<ConnectionId, Track>,
    /// Bytes that were delivered between two samples, with the time between them.
    recent: VecDeque<Step>,
    /// Sums of delivered bytes in bits per second.
    sums: Vec<u64>,
    /// Connections that took part in a sum.
    in_sums: HashSet<ConnectionId>,
    last: Option<Duration>,
}

/// A connection over the time.
#[derive(Debug, Clone, Copy)]
struct Track {
    last: Connection,
    /// The highest delivery rate that the network limited, in bytes per second.
    best_rate: u64,
}

/// The time between two samples.
#[derive(Debug, Clone, Copy)]
struct Step {
    time: Duration,
    delivered: u64,
    /// True if the network limited a connection.
    limited: bool,
}

impl Samples {
    /// Adds all connections as they are at the time `at` since the start.
    pub(crate) fn add(&mut self, at: Duration, connections: &[Connection]) {
        let mut delivered = 0;
        let mut limited = false;
        for connection in connections {
            let before = self.connections.get(&connection.id).copied();
            let fresh = before.map_or(0, |track| connection.delivered.saturating_sub(track.last.delivered));
            let by_network = !connection.app_limited && connection.delivery_rate > 0;
            limited |= by_network && fresh > 0;
            delivered = u64::saturating_add(delivered, fresh);
            if fresh > 0 {
                self.in_sums.insert(connection.id);
            }
            let best = before.map_or(0, |track| track.best_rate);
            let best_rate = if by_network { best.max(connection.delivery_rate) } else { best };
            self.connections.insert(connection.id, Track { last: *connection, best_rate });
        }
        if let Some(last) = self.last.replace(at) {
            self.step(Step { time: at.saturating_sub(last), delivered, limited });
        }
    }

    fn step(&mut self, step: Step) {
        self.recent.push_back(step);
        let time: Duration = self.recent.iter().map(|step| step.time).sum();
        if time < WINDOW {
            return;
        }
        let delivered = self.recent.iter().map(|step| step.delivered).fold(0, u64::saturating_add);
        if self.recent.iter().all(|step| step.limited) {
            self.sums.push(per_second(delivered, time));
        }
        self.recent.pop_front();
    }

    /// Returns the estimate from at least this number of connections.
    pub(crate) fn estimate(&self, least: usize) -> Measured {
        let minima: Vec<u64> =
            self.connections.values().filter_map(|track| track.last.min_rtt_us).map(u64::from).collect();
        let rates: Vec<u64> =
            self.connections.values().map(|track| track.best_rate.saturating_mul(8)).filter(|rate| *rate > 0).collect();
        let one_by_one = known(percentile(&rates, HIGH), rates.len(), least);
        let together = known(percentile(&self.sums, HIGH), self.in_sums.len(), least);
        Measured {
            connections: self.connections.len(),
            rtt_us: known(percentile(&minima, LOWER_QUARTILE), minima.len(), least),
            rate: larger(one_by_one, together),
            segments: self.connections.values().map(|track| u64::from(track.last.segments)).sum(),
            sent_again: self.connections.values().map(|track| u64::from(track.last.sent_again)).sum(),
        }
    }
}

fn known(value: Option<u64>, connections: usize, needed: usize) -> Estimate {
    match value {
        Some(value) if connections >= needed => Estimate::Known { value, connections },
        _ => Estimate::TooFew { connections: if value.is_some() { connections } else { 0 }, needed },
    }
}

fn larger(one: Estimate, other: Estimate) -> Estimate {
    match (one, other) {
        (Estimate::Known { value: a, .. }, Estimate::Known { value: b, .. }) => {
            if a >= b {
                one
            } else {
                other
            }
        }
        (Estimate::TooFew { .. }, Estimate::Known { .. }) => other,
        _ => one,
    }
}

/// Returns bits per second.
pub(super) fn per_second(bytes: u64, time: Duration) -> u64 {
    let micros = u128::from(bytes) * 8 * 1_000_000 / time.as_micros().max(1);
    u64::try_from(micros).unwrap_or(u64::MAX)
}

/// Returns the value that `percent` of the values do not exceed.
pub(super) fn percentile(values: &[u64], percent: usize) -> Option<u64> {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) * percent / 100).copied()
}

/// The values of `link:` that fit the measured link. None: the configured value fits, or nothing was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Suggestion {
    /// `link.rtt`
    pub rtt: Option<Duration>,
    /// `link.down`, or `link.up` at a remote.
    pub rate: Option<Rate>,
}

/// Compares the measured link with the configured values.
pub(super) fn suggest(measured_rtt_us: Estimate, measured_rate: Estimate, rtt: Duration, rate: Rate) -> Suggestion {
    let configured_us = u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX);
    Suggestion {
        rtt: better(measured_rtt_us, configured_us).map(Duration::from_micros),
        rate: better(measured_rate, rate.bits_per_second).map(|bits_per_second| Rate { bits_per_second }),
    }
}

/// Returns the measured value with two digits if the configured one does not fit.
fn better(measured: Estimate, configured: u64) -> Option<u64> {
    let Estimate::Known { value, .. } = measured else { return None };
    let (low, high) = (value.min(configured), value.max(configured));
    let fits = high.saturating_mul(100) <= low.saturating_mul(FITS_UP_TO);
    (!fits).then(|| two_digits(value))
}

/// Returns the value rounded to two digits.
pub(super) fn two_digits(value: u64) -> u64 {
    let unit = 10_u64.pow(value.checked_ilog10().unwrap_or(0).saturating_sub(1));
    value.saturating_add(unit / 2) / unit * unit
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    const STEP: Duration = Duration::from_millis(250);

    pub(crate) fn connection(number: u16) -> Connection {
        let id = ConnectionId {
            local: "192.0.2.1:80".parse().unwrap(),
            remote: (std::net::Ipv4Addr::new(192, 0, 2, 2), number).into(),
            cookie: [0; 8],
        };
        Connection { id, app_limited: false, segments: 100, sent_again: 1, ..Connection::idle(number) }
    }

    #[test]
    fn the_rtt_is_the_lower_quartile_of_minima_and_needs_enough_connections() {
        let mut samples = Samples::default();
        let with = |number: u16, rtt: u32| Connection { min_rtt_us: Some(rtt), ..connection(number) };
        samples
            .add(Duration::ZERO, &[with(1, 600_000), with(2, 610_000), with(3, 20), with(4, 605_000), connection(5)]);
        assert_eq!(samples.estimate(5).rtt_us, Estimate::TooFew { connections: 4, needed: 5 });
        samples.add(STEP, &[with(5, 603_000), with(2, 601_000)]);
        let measured = samples.estimate(5);
        assert_eq!(measured.rtt_us, Estimate::Known { value: 600_000, connections: 5 });
        assert_eq!((measured.connections, measured.segments, measured.sent_again), (5, 500, 5));
    }

    #[test]
    fn connections_that_share_the_link_are_summed() {
        let mut samples = Samples::default();
        for step in 0..20_u32 {
            let delivered = u64::from(step) * 125_000;
            let share = |number| Connection { delivered, delivery_rate: 500_000, ..connection(number) };
            samples.add(STEP * step, &[share(1), share(2), share(3), share(4), share(5)]);
        }
        let rate = samples.estimate(5).rate;
        assert_eq!(rate, Estimate::Known { value: 20_000_000, connections: 5 }, "5 x 125 kB in 250 ms are 20 Mbit/s");
    }

    #[test]
    fn a_connection_alone_shows_the_rate_and_one_without_data_to_send_does_not() {
        let mut samples = Samples::default();
        for step in 0..20_u32 {
            let idle =
                Connection { delivery_rate: 9_000_000, app_limited: true, delivered: u64::from(step), ..connection(1) };
            samples.add(STEP * step, &[idle]);
        }
        assert_eq!(samples.estimate(1).rate, Estimate::TooFew { connections: 0, needed: 1 });
        samples.add(STEP * 20, &[Connection { delivery_rate: 2_500_000, ..connection(2) }]);
        assert_eq!(samples.estimate(1).rate, Estimate::Known { value: 20_000_000, connections: 1 });
        assert_eq!(samples.estimate(2).rate, Estimate::TooFew { connections: 1, needed: 2 });
    }

    #[test]
    fn a_value_that_fits_is_kept_and_another_is_rounded() {
        let known = |value| Estimate::Known { value, connections: 9 };
        let rate = |bits_per_second| Rate { bits_per_second };
        let beside = |rtt, sent| suggest(rtt, sent, Duration::from_millis(600), rate(20_000_000));
        assert_eq!(beside(known(560_000), known(18_400_000)), Suggestion { rtt: None, rate: None });
        assert_eq!(
            beside(known(43_612), known(1_953_000)),
            Suggestion { rtt: Some(Duration::from_millis(44)), rate: Some(rate(2_000_000)) }
        );
        assert_eq!(beside(Estimate::TooFew { connections: 1, needed: 5 }, known(1)).rtt, None);
    }

    proptest! {
        #[test]
        fn any_figures_give_an_estimate_without_a_panic(steps: Vec<(u64, u64, Option<u32>, bool, u16)>) {
            let mut samples = Samples::default();
            for (at, delivered, min_rtt_us, app_limited, number) in steps {
                let one = Connection { delivered, min_rtt_us, app_limited, delivery_rate: delivered, ..connection(number) };
                samples.add(Duration::from_micros(at), &[one]);
            }
            let measured = samples.estimate(1);
            let _ = suggest(measured.rtt_us, measured.rate, Duration::from_millis(1), Rate { bits_per_second: 1 });
        }
    }
}
