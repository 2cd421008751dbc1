//! The readings of the last minute, and the figures that follow from them. Pure, so that tests set the clock.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use super::limits::{SHORTEST_RTT_US, client_is_slow};
use super::measured::{ClientFigures, Measured, Timed};
use super::reading::{Reading, grown};
use crate::histogram::Histogram;
use crate::measure::{Connection, ConnectionId};

/// The time that the figures cover.
const WINDOW: Duration = Duration::from_mins(1);
/// The time for which the shortest round trip to another end is remembered. A queue that stands for longer than that counts
/// as a part of the link.
const REMEMBERED: Duration = Duration::from_mins(10);
/// The other ends that are remembered, and the clients of a moment.
const MOST: usize = 10_000;
/// A connection whose last acknowledgement is older says nothing about the queue of now.
const LIVELY_MS: u32 = 5_000;
/// The connections of one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moment<'c> {
    /// Those that cross the link.
    pub link: &'c [Connection],
    /// Those of clients, if they do not cross the link.
    pub clients: &'c [Connection],
}

/// The figures of the connections of a moment.
#[derive(Debug, Clone, Default)]
struct Heard {
    queue_us: Option<u64>,
    segments: u64,
    sent_again: u64,
    /// The shortest round trips of clients, in microseconds.
    clients: Vec<(IpAddr, u32)>,
}

/// The last minute.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    readings: VecDeque<(Duration, Reading)>,
    moments: VecDeque<(Duration, Heard)>,
    /// The shortest round trip to each other end, in microseconds, with the time at which it was seen last.
    shortest: HashMap<IpAddr, (Duration, u32)>,
    /// The segments of each connection so far.
    sent: Option<HashMap<ConnectionId, (u32, u32)>>,
    clients_cross_the_link: bool,
}

impl Sampler {
    /// Begins without readings. At an edge, `clients_cross_the_link`.
    #[must_use]
    pub(crate) fn new(clients_cross_the_link: bool) -> Self {
        Self { clients_cross_the_link, ..Self::default() }
    }

    /// Adds the counters at the time `at` since the start.
    pub(crate) fn read(&mut self, at: Duration, reading: Reading) {
        self.readings.push_back((at, reading));
        // One reading from before the window gives its beginning.
        while self.readings.get(1).is_some_and(|(then, _)| at.saturating_sub(*then) >= WINDOW) {
            self.readings.pop_front();
        }
    }

    /// Adds the connections at the time `at` since the start.
    pub(crate) fn hear(&mut self, at: Duration, moment: Moment<'_>) {
        let crosses = |one: &&Connection| one.min_rtt_us.is_some_and(|rtt| rtt >= SHORTEST_RTT_US);
        let link: Vec<&Connection> = moment.link.iter().filter(crosses).collect();
        self.remember(at, &link);
        let (segments, sent_again) = self.segments(&link);
        let clients = if self.clients_cross_the_link { moment.link } else { moment.clients };
        let heard = Heard { queue_us: self.queue(&link), segments, sent_again, clients: shortest_of(clients) };
        self.moments.push_back((at, heard));
        self.moments.retain(|(then, _)| at.saturating_sub(*then) < WINDOW);
    }

    fn remember(&mut self, at: Duration, link: &[&Connection]) {
        self.shortest.retain(|_, (then, _)| at.saturating_sub(*then) < REMEMBERED);
        for connection in link {
            let Some(rtt) = connection.min_rtt_us else { continue };
            let place = connection.id.remote.ip();
            if self.shortest.len() < MOST || self.shortest.contains_key(&place) {
                let known = self.shortest.get(&place).map_or(rtt, |(_, known)| rtt.min(*known));
                self.shortest.insert(place, (at, known));
            }
        }
    }

    /// Returns the median time that packets of lively connections wait beyond the shortest round trip.
    fn queue(&self, link: &[&Connection]) -> Option<u64> {
        let waits = link.iter().filter(|one| one.acknowledged_ms_ago < LIVELY_MS).filter_map(|one| {
            let (_, shortest) = self.shortest.get(&one.id.remote.ip())?;
            Some(u64::from(one.rtt_us.saturating_sub(*shortest)))
        });
        median(waits.collect())
    }

    /// Returns the segments that were sent since the last moment, and those of them that were sent again.
    fn segments(&mut self, link: &[&Connection]) -> (u64, u64) {
        let now: HashMap<_, _> = link.iter().map(|one| (one.id, (one.data_segments, lost(one)))).collect();
        let before = self.sent.replace(now.clone());
        // The first moment cannot tell new connections from old ones.
        let Some(before) = before else { return (0, 0) };
        now.iter().fold((0, 0), |(segments, again), (id, now)| {
            let then = before.get(id).copied().unwrap_or_default();
            (segments + u64::from(now.0.saturating_sub(then.0)), again + u64::from(now.1.saturating_sub(then.1)))
        })
    }

    /// Returns the figures of the last minute. Without two readings, there are none.
    #[must_use]
    pub(crate) fn measured(&self) -> Measured {
        let (Some((from, first)), Some((to, last))) = (self.readings.front(), self.readings.back()) else {
            return Measured::default();
        };
        let time = to.saturating_sub(*from);
        let bits = |now, before| u64::try_from(u128::from(grown(now, before)) * 8000 / time.as_millis().max(1));
        let heard = || self.moments.iter().map(|(_, heard)| heard);
        Measured {
            over_s: time.as_secs(),
            requests: grown(last.requests, first.requests),
            peers: u64::try_from(self.shortest.len()).unwrap_or(u64::MAX),
            rtt_us: median(self.shortest.values().map(|(_, rtt)| u64::from(*rtt)).collect()),
            queue_us: median(heard().filter_map(|heard| heard.queue_us).collect()),
            segments: heard().map(|heard| heard.segments).sum(),
            sent_again: heard().map(|heard| heard.sent_again).sum(),
            down_bps: bits(last.down, first.down).unwrap_or(u64::MAX),
            up_bps: bits(last.up, first.up).unwrap_or(u64::MAX),
            lookups: timed(&last.lookups, &first.lookups),
            connects: timed(&last.connects, &first.connects),
            first_bytes: timed(&last.first_bytes, &first.first_bytes),
            clients: self.clients(),
        }
    }

    /// Judges the clients by the shortest round trip of each in the last minute.
    fn clients(&self) -> ClientFigures {
        let mut shortest: HashMap<IpAddr, u32> = HashMap::new();
        for (client, rtt) in self.moments.iter().flat_map(|(_, heard)| &heard.clients) {
            shortest.entry(*client).and_modify(|known| *known = (*known).min(*rtt)).or_insert(*rtt);
        }
        let all: Vec<u64> = shortest.values().map(|rtt| u64::from(*rtt)).collect();
        // Clients of an edge are beyond the link. The median of them is the link's.
        let link_us = if self.clients_cross_the_link { median(all.clone()).unwrap_or(0) } else { 0 };
        let slow = || all.iter().filter(|rtt| client_is_slow(**rtt, link_us));
        ClientFigures {
            seen: u64::try_from(all.len()).unwrap_or(u64::MAX),
            slow: u64::try_from(slow().count()).unwrap_or(u64::MAX),
            slowest_us: slow().max().map_or(0, |slowest| slowest.saturating_sub(link_us)),
        }
    }
}

/// Returns the segments that were lost. Those that the other end had already were sent again because a queue grew. A
/// handshake that takes longer than its first timeout of 1 s (RFC 6298) is sent again, too, on every connection.
fn lost(one: &Connection) -> u32 {
    if one.bytes_sent_again == 0 { 0 } else { one.sent_again.saturating_sub(one.sent_needlessly) }
}

/// Returns the shortest round trip of each client.
fn shortest_of(connections: &[Connection]) -> Vec<(IpAddr, u32)> {
    let mut found: HashMap<IpAddr, u32> = HashMap::new();
    for one in connections {
        let Some(rtt) = one.min_rtt_us else { continue };
        let client = one.id.remote.ip();
        if found.len() < MOST || found.contains_key(&client) {
            found.entry(client).and_modify(|known| *known = (*known).min(rtt)).or_insert(rtt);
        }
    }
    found.into_iter().collect()
}

fn timed(now: &Histogram, before: &Histogram) -> Option<Timed> {
    let times = now.since(before);
    Some(Timed { median_us: times.median_us()?, count: times.count() })
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::tests_connection;

    const STEP: Duration = Duration::from_secs(4);

    fn to(last: u8, rtt_us: u32, shortest_us: u32) -> Connection {
        let mut one = tests_connection(u16::from(last));
        one.id.remote = (std::net::Ipv4Addr::new(192, 0, 2, last), 5000).into();
        Connection { rtt_us, min_rtt_us: Some(shortest_us), ..one }
    }

    #[test]
    fn a_queue_is_what_stands_beyond_the_shortest_round_trip_to_the_same_end() {
        let mut sampler = Sampler::new(false);
        sampler.read(Duration::ZERO, Reading::default());
        sampler.hear(Duration::ZERO, Moment { link: &[to(1, 600_000, 600_000)], clients: &[] });
        for step in 1..10 {
            // A connection that is made in the queue has never seen the link without it.
            sampler.hear(STEP * step, Moment { link: &[to(1, 900_000, 890_000)], clients: &[] });
            sampler.read(STEP * step, Reading::default());
        }
        let measured = sampler.measured();
        assert_eq!((measured.rtt_us, measured.queue_us), (Some(600_000), Some(300_000)));
        let idle = Connection { acknowledged_ms_ago: 60_000, ..to(1, 900_000, 600_000) };
        for step in 10..40 {
            sampler.hear(STEP * step, Moment { link: &[idle], clients: &[] });
        }
        assert_eq!(sampler.measured().queue_us, None, "nothing was sent");
    }

    #[test]
    fn segments_count_from_the_second_moment_and_those_of_new_connections_at_once() {
        let mut sampler = Sampler::new(false);
        let sent = |last, data_segments, sent_again| Connection {
            data_segments,
            sent_again,
            bytes_sent_again: 1,
            ..to(last, 50_000, 50_000)
        };
        sampler.read(Duration::ZERO, Reading::default());
        sampler.hear(Duration::ZERO, Moment { link: &[sent(1, 5000, 400)], clients: &[] });
        sampler.hear(STEP, Moment { link: &[sent(1, 5100, 404), sent(2, 50, 1)], clients: &[] });
        let measured = sampler.measured();
        assert_eq!((measured.segments, measured.sent_again, measured.peers), (150, 5, 2));
    }

    #[test]
    fn what_was_sent_again_in_vain_is_no_loss() {
        let one = |sent_again, bytes_sent_again, sent_needlessly| {
            lost(&Connection { sent_again, bytes_sent_again, sent_needlessly, ..to(1, 600_000, 600_000) })
        };
        assert_eq!(one(3, 4000, 0), 3);
        assert_eq!(one(3, 4000, 2), 1, "the other end had two of them");
        assert_eq!(one(1, 0, 0), 0, "a handshake");
        assert_eq!(one(0, 0, 4), 0);
    }

    #[test]
    fn rates_and_times_are_those_of_the_last_minute() {
        let mut sampler = Sampler::new(false);
        for step in 0..100 {
            let reading =
                Reading { down: u64::from(step) * 4_000_000, requests: u64::from(step), ..Reading::default() };
            sampler.read(STEP * step, reading);
        }
        let measured = sampler.measured();
        assert_eq!((measured.over_s, measured.down_bps, measured.requests), (60, 8_000_000, 15));
        assert_eq!(Sampler::new(false).measured(), Measured::default());
    }

    #[test]
    fn a_client_far_from_a_remote_has_a_slow_network_and_at_an_edge_only_one_far_from_the_others() {
        let clients = [to(1, 0, 3_000), to(2, 0, 4_000), to(3, 0, 200_000)];
        let figures = |crosses, clients: &[Connection]| {
            let mut sampler = Sampler::new(crosses);
            sampler.read(Duration::ZERO, Reading::default());
            let moment = if crosses { Moment { link: clients, clients: &[] } } else { Moment { link: &[], clients } };
            sampler.hear(Duration::ZERO, moment);
            sampler.measured().clients
        };
        assert_eq!(figures(false, &clients), ClientFigures { seen: 3, slow: 1, slowest_us: 200_000 });
        let far = [to(1, 0, 600_000), to(2, 0, 605_000), to(3, 0, 610_000)];
        assert_eq!(figures(true, &far), ClientFigures { seen: 3, slow: 0, slowest_us: 0 });
        let one = [to(1, 0, 600_000), to(2, 0, 605_000), to(3, 0, 905_000)];
        assert_eq!(figures(true, &one), ClientFigures { seen: 3, slow: 1, slowest_us: 300_000 });
    }
}
