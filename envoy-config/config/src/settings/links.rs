//! Several links under one pair (`links`).

use std::time::Duration;

use super::link::{Fill, Link, Price};
use crate::device_name::DeviceName;
use crate::units::Rate;

/// One of several links of a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLink {
    /// Its name, in `check`, `status` and metrics.
    pub name: String,
    /// The network interface that leads to it.
    pub device: DeviceName,
    /// The round-trip time without queueing.
    pub rtt: Duration,
    /// The rate towards the clients.
    pub down: Rate,
    /// The rate from the clients.
    pub up: Rate,
    /// The price of its bytes.
    pub price: Price,
    /// The largest packet that crosses it whole, in bytes. None: the kernel finds it.
    pub mtu: Option<u32>,
    /// The part of it that Longhaul sends at most.
    pub fill: Fill,
    /// The use that the file states.
    pub wish: UseWish,
}

impl NamedLink {
    /// Returns the link of a file that states these values alone.
    #[must_use]
    pub(crate) fn alone(&self) -> Link {
        Link { price: self.price, fill: self.fill, ..Link::of(self.rtt, self.down, self.up) }
    }
}

/// The use of a link, as the file chooses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UseWish {
    /// By its round trip, its rate and its price.
    Auto,
    /// It carries bytes of every connection.
    Always,
    /// It carries large transfers.
    Bulk,
    /// It carries bytes while no other link works.
    Backup,
}

/// The wish for Multipath TCP between the ends of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multipath {
    /// At a remote with several links.
    Auto,
    /// Also at a ground, for such remotes.
    On,
    /// Never.
    Off,
}

/// Returns a link with the longest round trip and the lowest rates of all. Without `all`, returns `one`.
pub(super) fn slowest(one: &Link, all: &[NamedLink]) -> Link {
    let worst = |worst: Link, next: &NamedLink| Link {
        rtt: worst.rtt.max(next.rtt),
        down: worst.down.min(next.down),
        up: worst.up.min(next.up),
        ..worst
    };
    all.iter().fold(one.clone(), worst)
}

/// Returns a link with the longest round trip and the sum of the rates of all. Without `all`, returns `one`.
pub(super) fn together(one: &Link, all: &[NamedLink]) -> Link {
    if all.is_empty() {
        return one.clone();
    }
    let (down, up) = (all.iter().map(|link| link.down).sum(), all.iter().map(|link| link.up).sum());
    Link { down, up, ..slowest(one, all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, rtt: u64, down: u64, up: u64) -> NamedLink {
        let rate = |mbit| Rate { bits_per_second: mbit * 1_000_000 };
        NamedLink {
            name: name.to_owned(),
            device: DeviceName::parse(name).unwrap(),
            rtt: Duration::from_millis(rtt),
            down: rate(down),
            up: rate(up),
            mtu: None,
            price: Price::Free,
            fill: Fill::Off,
            wish: UseWish::Auto,
        }
    }

    #[test]
    fn times_follow_the_slowest_link_and_buffers_all_of_them() {
        let all = [link("lte0", 80, 8, 2), link("geo0", 600, 20, 5)];
        let one = all[0].alone();
        let of = |link: &Link| (link.rtt.as_millis(), link.down.to_string(), link.up.to_string());
        assert_eq!(of(&slowest(&one, &all)), (600, "8mbit".to_owned(), "2mbit".to_owned()));
        assert_eq!(of(&together(&one, &all)), (600, "28mbit".to_owned(), "7mbit".to_owned()));
        assert_eq!((slowest(&one, &[]), together(&one, &[])), (one.clone(), one), "one link is itself");
    }
}
