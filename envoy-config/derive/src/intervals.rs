//! The intervals at which a pair sends bytes while no client does, by the price of the link's bytes.
//!
//! Each of them finds a fault, or keeps a NAT from forgetting a connection. On a free link they are short, so a fault is
//! found soon. On a metered link they cost money all day, so they are as long as NATs allow. Then an idle hour of a pair
//! with its defaults costs less than 60 KB (`make bench ONLY=small-box`).
//!
//! A ping that is not acknowledged ends its connection after `user_timeout`, so a fault of an idle link is found within the
//! interval and that time. Requests find it at once. A connection without pings ends after several lost probes on a free link, and
//! after one on a metered link.

use std::time::Duration;

use longhaul_config::{Link, Price, Role};

/// The interval of a remote on a free link. After 85 s without bytes, a NAT that forgets after 60 s cost the next page over
/// https 3 s, and nobody noticed before.
const BELOW_SHORT_NATS: Duration = Duration::from_secs(45);
/// The interval of a metered link. Of the NATs of mobile networks, few forget a TCP connection sooner than after 5 min.
/// RFC 5382 requires 124 min.
const BELOW_NATS: Duration = Duration::from_mins(4);
/// The interval of a ground's TCP probes. The remote's probes keep NATs from forgetting, so these only find a remote that
/// vanished.
const SECOND_PROBES: Duration = Duration::from_mins(30);

/// The intervals, and their reasons for `longhaul check`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intervals {
    /// The time without bytes after which TCP probes a connection.
    pub(crate) keepalive_idle: Duration,
    /// The reason for `keepalive_idle`.
    pub(crate) keepalive_reason: &'static str,
    /// The time between two pings on the pipe.
    pub(crate) ping: Duration,
    /// The reason for `ping`.
    pub(crate) ping_reason: &'static str,
    /// The time between two health checks of the only ground, while it responds. Each costs some 390 bytes.
    pub(crate) check: Duration,
    /// The reason for `check`.
    pub(crate) check_reason: &'static str,
    /// The least time between two health checks of a ground that another way can replace. A fault costs clients this
    /// time.
    pub(crate) check_before_a_switch: Duration,
    /// The reason for `check_before_a_switch`.
    pub(crate) check_before_a_switch_reason: &'static str,
    /// The time between two queries for the address of the other end.
    pub resolve: Duration,
}

impl Intervals {
    /// Returns the intervals of an end of this link.
    #[must_use]
    pub(crate) fn of(link: &Link, role: &Role) -> Self {
        // The remote dials, so a NAT stands in front of it.
        let holds_nats = matches!(role, Role::Remote(_));
        let quick_check = Duration::from_secs(1) + link.rtt * 2;
        match link.price {
            Price::Free => Self {
                keepalive_idle: if holds_nats { BELOW_SHORT_NATS } else { Duration::from_mins(2) },
                keepalive_reason: if holds_nats {
                    "below the minute after which some NATs forget a connection"
                } else {
                    "below the few minutes after which mobile networks forget a connection"
                },
                ping: Duration::from_secs(20) + link.rtt * 10,
                ping_reason: "20 s + 10 x RTT: below what NATs and satellite gateways remember",
                check: Duration::from_secs(3),
                check_reason: "a silent ground is named within 10 s; each check costs some 390 bytes",
                check_before_a_switch: quick_check,
                check_before_a_switch_reason: "1 s + 2 x RTT: a fault costs clients this time",
                resolve: Duration::from_secs(30),
            },
            Price::Metered => {
                let (keepalive_idle, keepalive_reason) = if matches!(role, Role::Ground(_)) {
                    (SECOND_PROBES, "the link is metered, and the remote's probes hold NATs open")
                } else {
                    (BELOW_NATS, "the link is metered: just below the 5 min after which NATs forget a connection")
                };
                Self {
                    keepalive_idle,
                    keepalive_reason,
                    ping: BELOW_NATS,
                    ping_reason: "the link is metered: just below the 5 min after which NATs forget a connection",
                    check: BELOW_NATS,
                    check_reason: "the link is metered, and there is no other way",
                    check_before_a_switch: quick_check.max(Duration::from_secs(30)),
                    check_before_a_switch_reason: "1 s + 2 x RTT, at least 30 s: the link is metered",
                    resolve: Duration::from_mins(5),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use longhaul_config::Rate;

    use super::*;

    fn of(price: Price) -> Intervals {
        let down = Rate { bits_per_second: 20_000_000 };
        Intervals::of(&Link { price, ..Link::of(Duration::from_millis(600), down, down) }, &Role::Edge)
    }

    #[test]
    fn every_interval_of_a_metered_link_is_longer_and_two_of_them_hold_nats_open() {
        let (free, metered) = (of(Price::Free), of(Price::Metered));
        let all = |one: &Intervals| [one.keepalive_idle, one.ping, one.check, one.check_before_a_switch, one.resolve];
        assert!(all(&free).iter().zip(all(&metered)).all(|(free, metered)| *free < metered));
        assert!([metered.keepalive_idle, metered.ping].iter().all(|one| *one < Duration::from_mins(5)));
    }
}
