//! Follows connections from their first packet to the first bytes of a response.
//!
//! The box sees a client's segments later than the client sends them, and those of a server earlier than the client gets
//! them. The time between the box and the client counts for both figures: the set-up ends with the client's
//! acknowledgement, and the first bytes get the time that this acknowledgement took.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::time::Duration;

use super::segment::Segment;
use super::times::Times;
use super::{Figures, Group, micros};

/// The most connections that are followed at one time. Further ones are not measured.
const MOST: usize = 8192;
/// The longest time between the first packet of a connection and the first bytes of a response.
const PATIENCE: Duration = Duration::from_mins(1);

/// The connections of both groups.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// Connections by a hash of their addresses. No address is kept.
    open: HashMap<u64, Open>,
    hasher: RandomState,
    direct: Measured,
    accelerated: Measured,
    /// The time of the last search for connections without a response.
    searched: Duration,
}

#[derive(Debug, Default)]
struct Measured {
    set_up: Times,
    first_bytes: Times,
}

/// A connection without bytes of a response.
#[derive(Debug, Clone, Copy)]
struct Open {
    group: Group,
    /// The time of its first packet.
    since: Duration,
    stage: Stage,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// The client has sent a SYN.
    Asked,
    /// The server has responded at this time.
    Accepted(Duration),
    /// The handshake is done. The client is this far from the box, there and back.
    Ready(Duration),
    /// The client has sent its first bytes at this time.
    Requested { at: Duration, near: Duration },
}

impl Comparison {
    /// Adds a segment that the box saw at the time `at` since the start.
    pub(crate) fn add(&mut self, at: Duration, group: Group, segment: &Segment) {
        self.search(at);
        let asking = self.key(segment.from, segment.to);
        if segment.opens() {
            // A repeated SYN is part of the time that its client waits.
            if self.open.len() < MOST || self.open.contains_key(&asking) {
                let fresh = Open { group, since: at, stage: Stage::Asked };
                self.open.entry(asking).or_insert(fresh);
            }
            return;
        }
        if let Some(open) = self.open.get(&asking).copied() {
            self.of_client(at, asking, open, segment);
        } else {
            let asked = self.key(segment.to, segment.from);
            if let Some(open) = self.open.get(&asked).copied() {
                self.of_server(at, asked, open, segment);
            }
        }
    }

    fn of_client(&mut self, at: Duration, key: u64, open: Open, segment: &Segment) {
        let mut stage = open.stage;
        if let (Stage::Accepted(accepted), true) = (stage, segment.acknowledges() && !segment.ends()) {
            self.group(open.group).set_up.add(micros(at.saturating_sub(open.since)));
            stage = Stage::Ready(at.saturating_sub(accepted));
        }
        if let (Stage::Ready(near), true) = (stage, segment.payload > 0) {
            stage = Stage::Requested { at, near };
        }
        self.next(key, open, stage, segment);
    }

    fn of_server(&mut self, at: Duration, key: u64, open: Open, segment: &Segment) {
        match open.stage {
            Stage::Asked | Stage::Accepted(_) if segment.accepts() => {
                self.next(key, open, Stage::Accepted(at), segment);
            }
            Stage::Requested { at: requested, near } if segment.payload > 0 => {
                self.group(open.group).first_bytes.add(micros(at.saturating_sub(requested) + near));
                self.open.remove(&key);
            }
            // A server that sends the first bytes responds to no request.
            Stage::Ready(_) if segment.payload > 0 => {
                self.open.remove(&key);
            }
            stage => self.next(key, open, stage, segment),
        }
    }

    fn next(&mut self, key: u64, open: Open, stage: Stage, segment: &Segment) {
        if segment.ends() {
            self.open.remove(&key);
        } else {
            self.open.insert(key, Open { stage, ..open });
        }
    }

    /// Forgets connections that got no response for a long time.
    fn search(&mut self, at: Duration) {
        if at.saturating_sub(self.searched) >= PATIENCE / 4 {
            self.searched = at;
            self.open.retain(|_, open| at.saturating_sub(open.since) < PATIENCE);
        }
    }

    fn group(&mut self, group: Group) -> &mut Measured {
        match group {
            Group::Direct => &mut self.direct,
            Group::Accelerated => &mut self.accelerated,
        }
    }

    fn key(&self, client: SocketAddr, server: SocketAddr) -> u64 {
        self.hasher.hash_one((client, server))
    }

    /// Returns the figures of a group.
    #[must_use]
    pub(crate) fn figures(&self, group: Group) -> Figures {
        let measured = match group {
            Group::Direct => &self.direct,
            Group::Accelerated => &self.accelerated,
        };
        Figures { set_up: measured.set_up.median(), first_bytes: measured.first_bytes.median() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::segment::tests::{CLIENT, SERVER, segment};
    use super::super::times::Median;
    use super::*;

    fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    /// A connection whose server is 600 ms from the box, and whose client is 20 ms from it. The response takes 50 ms.
    const FAR: [(u64, bool, &str, usize); 6] = [
        (0, true, "S", 0),
        (600, false, "SA", 0),
        (620, true, "A", 0),
        (621, true, "A", 300),
        (1221, false, "A", 0),
        (1271, false, "A", 1400),
    ];

    fn add(comparison: &mut Comparison, start: u64, client: &str, packets: &[(u64, bool, &str, usize)]) {
        for (at, asks, flags, payload) in packets {
            let (from, to) = if *asks { (client, SERVER) } else { (SERVER, client) };
            comparison.add(ms(start + at), Group::Direct, &segment(from, to, flags, *payload));
        }
    }

    fn medians(comparison: &Comparison) -> (Option<u64>, Option<u64>) {
        let known = |median| match median {
            Median::Known { median_us, .. } => Some(median_us),
            Median::TooFew { .. } => None,
        };
        let figures = comparison.figures(Group::Direct);
        (known(figures.set_up), known(figures.first_bytes))
    }

    #[test]
    fn both_times_are_those_that_the_client_sees() {
        let mut comparison = Comparison::default();
        for number in 0..30 {
            add(&mut comparison, number, &format!("192.0.2.2:{}", 5000 + number), &FAR);
        }
        assert_eq!(medians(&comparison), (Some(620_000), Some(670_000)));
        assert!(comparison.open.is_empty());
        let other = comparison.figures(Group::Accelerated);
        assert_eq!((other.set_up.connections(), other.first_bytes.connections()), (0, 0));
    }

    #[test]
    fn the_first_syn_and_the_last_response_to_it_count() {
        let mut comparison = Comparison::default();
        for number in 0..30 {
            let client = format!("192.0.2.2:{}", 5000 + number);
            let mut packets = vec![(0, true, "S", 0), (500, true, "S", 0), (550, false, "SA", 0)];
            packets.extend(FAR.iter().skip(1).map(|(at, asks, flags, payload)| (at + 500, *asks, *flags, *payload)));
            add(&mut comparison, 0, &client, &packets);
        }
        assert_eq!(medians(&comparison), (Some(1_120_000), Some(670_000)));
    }

    #[test]
    fn a_connection_that_is_refused_or_that_the_server_begins_has_no_such_time() {
        let mut comparison = Comparison::default();
        add(&mut comparison, 0, CLIENT, &[(0, true, "S", 0), (5, false, "RA", 0), (6, true, "A", 5)]);
        add(&mut comparison, 10, CLIENT, &FAR[..3]);
        add(&mut comparison, 20, CLIENT, &[(700, false, "A", 60), (701, true, "A", 10), (702, false, "A", 9)]);
        let figures = comparison.figures(Group::Direct);
        assert_eq!((figures.set_up.connections(), figures.first_bytes.connections()), (1, 0));
        assert!(comparison.open.is_empty());
    }

    #[test]
    fn connections_without_a_response_are_forgotten_and_bounded() {
        let mut comparison = Comparison::default();
        let flood =
            |number: usize| segment(&format!("192.0.2.{}:{}", number % 200, 2000 + number / 200), SERVER, "S", 0);
        for number in 0..2 * MOST {
            comparison.add(ms(0), Group::Direct, &flood(number));
        }
        assert_eq!(comparison.open.len(), MOST);
        comparison.add(PATIENCE, Group::Direct, &segment(CLIENT, SERVER, "S", 0));
        assert_eq!(comparison.open.len(), 1);
    }

    proptest! {
        #[test]
        fn any_segments_are_counted_without_a_panic(
            packets: Vec<(u64, bool, bool, proptest::sample::Index, bool)>
        ) {
            const FLAGS: [&str; 7] = ["S", "SA", "A", "F", "FA", "R", "RA"];
            let mut comparison = Comparison::default();
            let count = packets.len();
            for (at, asks, group, flags, payload) in packets {
                let (from, to) = if asks { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
                let group = if group { Group::Direct } else { Group::Accelerated };
                let flags: &&str = flags.get(&FLAGS);
                let segment = segment(from, to, flags, usize::from(payload));
                comparison.add(Duration::from_micros(at), group, &segment);
            }
            let figures = comparison.figures(Group::Direct);
            prop_assert!(figures.first_bytes.connections() <= figures.set_up.connections());
            prop_assert!(figures.set_up.connections() <= count);
        }
    }
}
