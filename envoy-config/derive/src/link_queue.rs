//! The kernel's queue in front of the link (`link.device`).
//!
//! Envoy shares the bytes that it sends ([`Neighbours`](super::Neighbours)). The queue of the device sees whole packets, so
//! it also shares what bypasses Longhaul: UDP, QUIC, other hosts. It is the outer bound, a little above what a pair sends by
//! itself, so a pair alone never waits in it.

use std::time::Duration;

use longhaul_config::{DeviceName, Link, PeerName, Rate, Role, show_duration};

/// The part of the link that leaves the modem's queue empty, in percent. The kernel counts the packets of IP and Ethernet.
/// A link adds frames of its own, 8 to 40 bytes a packet. The share of a pair (`link.fill: auto`) is 94 %.
const PERCENT: u64 = 95;
/// The round trip of an ordinary Internet path. A queue that expects less drops packets of far servers too soon.
const LEAST_ROUND_TRIP: Duration = Duration::from_millis(100);
/// The part of a round trip for which packets may wait all the time (RFC 8289).
const TARGET_PART: u32 = 20;
/// The packets of this size that may wait in any case: below two of them, a queue drops what a slow link needs.
const PACKET_BYTES: u64 = 1514;

/// The queue of the link's device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkQueue {
    /// `link.device: off`.
    Off,
    /// Nothing is shaped: the device of a ground has a queue of one rate, and its remotes have several links.
    SeveralLinks,
    /// `longhaul host` shapes the device.
    Shaped(Shaping),
}

/// The values of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shaping {
    /// The device.
    pub device: DeviceName,
    /// The rate of whole packets.
    pub rate: Rate,
    /// The formula of the rate.
    pub formula: String,
    /// The round trip of the connections in the queue.
    pub round_trip: Duration,
    /// The time for which packets may wait all the time.
    pub target: Duration,
    /// The address that identifies a client.
    pub client: ClientAddress,
}

/// The address of the client in a packet that this box sends over the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAddress {
    /// Its source, before a NAT of this box changes it.
    Source,
    /// Its destination.
    Destination,
}

impl LinkQueue {
    /// The reason for [`LinkQueue::SeveralLinks`].
    pub const SEVERAL_LINKS: &str = "`split.peer` names several remotes, and each has a link of its own";

    pub(super) fn of(link: &Link, role: &Role) -> Self {
        let Some(device) = link.device.clone() else { return Self::Off };
        let (rate, key, client) = match role {
            role if has_several_links(role) => return Self::SeveralLinks,
            Role::Remote(_) => (link.up, "link.up", ClientAddress::Source),
            Role::Edge | Role::Ground(_) => (link.down, "link.down", ClientAddress::Destination),
        };
        let sent = Rate { bits_per_second: (rate.bits_per_second * PERCENT / 100).max(1) };
        let round_trip = link.rtt.max(LEAST_ROUND_TRIP);
        Self::Shaped(Shaping {
            device,
            formula: format!("{PERCENT}% of {rate} (`{key}`), which leaves room for the frames of the link"),
            rate: sent,
            round_trip,
            target: (round_trip / TARGET_PART).max(sent.time_for(PACKET_BYTES * 2)),
            client,
        })
    }

    /// Returns the values of the queue: name, value and formula.
    #[must_use]
    pub fn rows(&self) -> Vec<[String; 3]> {
        let Self::Shaped(shaping) = self else { return Vec::new() };
        let client = match shaping.client {
            ClientAddress::Source => "this box sends what comes from clients; a NAT of this box is looked through",
            ClientAddress::Destination => "this box sends what goes to clients",
        };
        let row = |name: &str, value: String, why: &str| [name.to_owned(), value, why.to_owned()];
        vec![
            row("rate", shaping.rate.to_string(), &shaping.formula),
            row(
                "round trip",
                show_duration(shaping.round_trip),
                &format!("`link.rtt`, at least {}", show_duration(LEAST_ROUND_TRIP)),
            ),
            row(
                "longest standing wait",
                show_duration(shaping.target),
                "a twentieth of the round trip, at least two packets [RFC 8289]",
            ),
            row("client", shaping.client.to_string(), client),
        ]
    }
}

/// Returns true for a ground that may have several remotes, each with a link of its own.
fn has_several_links(role: &Role) -> bool {
    matches!(role, Role::Ground(ground) if !matches!(ground.remotes.as_slice(), [PeerName::Exact(_)]))
}

impl std::fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Source => "source address",
            Self::Destination => "destination address",
        })
    }
}

#[cfg(test)]
mod tests {
    use longhaul_config::{Fill, Ground, HostName, Identity, PeerName, PipeTransport, Remote, Udp443, WhenDown};

    use super::*;

    const TRANSPORT: PipeTransport = PipeTransport::H2;

    fn link(rtt_ms: u64, down_kbit: u64, up_kbit: u64) -> Link {
        let rate = |kbit: u64| Rate { bits_per_second: kbit * 1000 };
        let device = DeviceName::parse("wan0");
        Link { device, ..Link::of(Duration::from_millis(rtt_ms), rate(down_kbit), rate(up_kbit)) }
    }

    fn identity() -> Identity {
        Identity { cert: "a".into(), key: "b".into(), ca: "c".into() }
    }

    fn remote() -> Role {
        Role::Remote(Remote {
            grounds: Vec::new(),
            identity: identity(),
            warm: None,
            udp443: Udp443::Pass,
            instant_answers: true,
            pack_headers: true,
            when_down: WhenDown::Error,
            restart_wait: Duration::from_secs(15),
            transport: TRANSPORT,
            multipath: longhaul_config::Multipath::Auto,
        })
    }

    fn ground(remotes: &[PeerName]) -> Role {
        Role::Ground(Ground {
            listen: "192.0.2.1:8443".parse().unwrap(),
            remotes: remotes.to_vec(),
            remote_files: Vec::new(),
            pack_headers: true,
            transport: TRANSPORT,
            multipath: longhaul_config::Multipath::Auto,
            identity: identity(),
        })
    }

    fn shaped(link: &Link, role: &Role) -> (u64, u128, u128, ClientAddress) {
        let LinkQueue::Shaped(one) = LinkQueue::of(link, role) else { panic!("not shaped") };
        (one.rate.bits_per_second, one.round_trip.as_millis(), one.target.as_millis(), one.client)
    }

    #[test]
    fn each_end_shapes_the_direction_in_which_it_sends() {
        let ship = link(700, 2000, 500);
        let name = |text| HostName::parse(text).unwrap();
        let down = (1_900_000, 700, 35, ClientAddress::Destination);
        assert_eq!(shaped(&ship, &Role::Edge), down);
        assert_eq!(shaped(&ship, &ground(&[PeerName::Exact(name("ship.example"))])), down);
        assert_eq!(shaped(&ship, &remote()), (475_000, 700, 50, ClientAddress::Source));
        // Several remotes have a link each, and the device carries all of them.
        let several = [PeerName::Exact(name("one.example")), PeerName::Exact(name("two.example"))];
        for remotes in [several.as_slice(), &[PeerName::Below(name("ships.example"))]] {
            let expected = LinkQueue::SeveralLinks;
            assert_eq!(LinkQueue::of(&ship, &ground(remotes)), expected);
        }
    }

    #[test]
    fn a_near_link_still_leads_to_far_servers_and_a_pair_shares_below_the_queue() {
        let lte = link(40, 20_000, 5000);
        assert_eq!(shaped(&lte, &Role::Edge), (19_000_000, 100, 5, ClientAddress::Destination));
        for fill in [Fill::Auto, Fill::Percent(50)] {
            assert_eq!(shaped(&Link { fill, ..lte.clone() }, &Role::Edge), shaped(&lte, &Role::Edge));
        }
        assert_eq!(LinkQueue::of(&Link { device: None, ..lte }, &Role::Edge), LinkQueue::Off);
    }
}
