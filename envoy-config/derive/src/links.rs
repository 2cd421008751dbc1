//! Several links under one pair (`links`): the use of each, and the times of its watch.

use std::time::Duration;

use longhaul_config::{DeviceName, Multipath, NamedLink, Price, Rate, Role, Settings, UseWish, show_duration};

use super::host::HostFacts;

/// A link whose round trip is below so many times that of the preferred link may carry bytes of every connection.
const ALIKE: u32 = 2;
/// The time in which a link without any sign of life is not yet dead, beside two round trips.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time between probes of a link that nobody uses. The standby of a free link is found dead within it.
const IDLE: Duration = Duration::from_secs(10);
/// The same of a metered link: 15 probes of 300 bytes an hour.
const IDLE_METERED: Duration = Duration::from_mins(4);

/// The use of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkUse {
    /// The first: all connections begin here while it works.
    Preferred,
    /// It carries bytes of every connection, beside the preferred link.
    Always,
    /// Large transfers are meant to use it. For now it stands by.
    Bulk,
    /// It carries bytes while no other link works.
    Backup,
}

impl LinkUse {
    /// Returns true if it carries no bytes while another link works.
    #[must_use]
    pub fn stands_by(self) -> bool {
        matches!(self, Self::Bulk | Self::Backup)
    }

    /// Returns its word in `check` and `status`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preferred => "preferred",
            Self::Always => "always",
            Self::Bulk => "bulk",
            Self::Backup => "backup",
        }
    }
}

/// The rates of the links that carry bytes at this moment, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RatesInUse {
    /// Towards the clients.
    pub down: Rate,
    /// From the clients.
    pub up: Rate,
}

/// One of several links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkPlan {
    /// The link as the file states it.
    pub link: NamedLink,
    /// Its use.
    pub used: LinkUse,
    /// The reason for the use.
    pub why: &'static str,
    /// The time without a sign of life after which it is dead.
    pub dead_after: Duration,
    /// The formula of `dead_after`.
    pub dead_after_formula: String,
    /// The time between probes while it carries nothing.
    pub idle_probe: Duration,
}

impl LinkPlan {
    /// Returns the plan of each link. The first is the preferred one.
    pub(super) fn all(links: &[NamedLink]) -> Vec<Self> {
        let Some(first) = links.first() else { return Vec::new() };
        links.iter().enumerate().map(|(at, link)| Self::of(link, (at > 0).then_some(first))).collect()
    }

    fn of(link: &NamedLink, preferred: Option<&NamedLink>) -> Self {
        let (used, why) = use_of(link, preferred);
        Self {
            used,
            why,
            dead_after: PATIENCE + link.rtt * 2,
            dead_after_formula: format!("{} + 2 x RTT {}", show_duration(PATIENCE), show_duration(link.rtt)),
            idle_probe: if link.price == Price::Metered { IDLE_METERED } else { IDLE },
            link: link.clone(),
        }
    }

    /// Returns the rates of the links that carry bytes, where those with a name that `works` work. None: none of them does.
    #[must_use]
    pub fn in_use(plans: &[Self], works: impl Fn(&str) -> bool) -> Option<RatesInUse> {
        let carrying = |stands_by: bool| -> Vec<&NamedLink> {
            let carries = |plan: &&Self| plan.used.stands_by() == stands_by && works(&plan.link.name);
            plans.iter().filter(carries).map(|plan| &plan.link).collect()
        };
        let links = [false, true].map(carrying).into_iter().find(|links| !links.is_empty())?;
        Some(RatesInUse { down: links.iter().map(|link| link.down).sum(), up: links.iter().map(|link| link.up).sum() })
    }

    /// Returns the bytes on the way to the clients: over the links that carry bytes together, or over one that stands by, if
    /// those are more. None without a link.
    pub(super) fn most_on_the_way(plans: &[Self]) -> Option<u64> {
        let together = Self::in_use(plans, |_| true)?.down;
        let longest = plans.iter().filter(|plan| !plan.used.stands_by()).map(|plan| plan.link.rtt).max()?;
        let alone = plans.iter().map(|plan| plan.link.down.bytes_in(plan.link.rtt)).max()?;
        Some(alone.max(together.bytes_in(longest)))
    }

    /// Returns the interface.
    #[must_use]
    pub fn device(&self) -> &DeviceName {
        &self.link.device
    }
}

fn use_of(link: &NamedLink, preferred: Option<&NamedLink>) -> (LinkUse, &'static str) {
    let Some(preferred) = preferred else { return (LinkUse::Preferred, "it is the first") };
    match link.wish {
        UseWish::Always => (LinkUse::Always, "the file says so"),
        UseWish::Bulk => (LinkUse::Bulk, "the file says so"),
        UseWish::Backup => (LinkUse::Backup, "the file says so"),
        UseWish::Auto if link.price == Price::Metered => (LinkUse::Backup, "it is metered"),
        UseWish::Auto if link.rtt < preferred.rtt * ALIKE => (LinkUse::Always, "its round trip is alike"),
        UseWish::Auto if link.down.bits_per_second > preferred.down.bits_per_second / 2 => {
            (LinkUse::Bulk, "its round trip is longer, and it is wide")
        }
        UseWish::Auto => (LinkUse::Backup, "it is slow and narrow"),
    }
}

/// The use of Multipath TCP between the ends of a pair, with the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MultipathUse {
    /// A remote opens its connections to the ground with it.
    Opens(&'static str),
    /// A ground accepts it. Connections without it stay TCP.
    Accepts(&'static str),
    /// This end uses TCP alone.
    Off(&'static str),
}

impl MultipathUse {
    pub(super) fn of(settings: &Settings, host: &HostFacts) -> Self {
        const REFUSED: MultipathUse = MultipathUse::Off("`split.multipath` is off");
        match &settings.role {
            Role::Edge => Self::Off("one box has no pair"),
            Role::Remote(remote) if remote.multipath == Multipath::Off => REFUSED,
            Role::Remote(_) if settings.links.is_empty() => Self::Off("there is one link"),
            Role::Remote(_) => Self::Opens("a connection outlives the loss of one of several links"),
            Role::Ground(ground) if ground.multipath == Multipath::Off => REFUSED,
            // Its options would be missing at the connections of all remotes: they bound the wait after an outage.
            Role::Ground(ground) if ground.multipath == Multipath::Auto => {
                Self::Off("a remote with several links needs `split.multipath: on`")
            }
            Role::Ground(_) if host.multipath => Self::Accepts("remotes with several links use it"),
            Role::Ground(_) => Self::Off("the kernel has none, or it is not known"),
        }
    }
}

#[cfg(test)]
mod tests {
    use longhaul_config::Fill;

    use super::*;

    fn link(name: &str, rtt: u64, down: u64, price: Price, wish: UseWish) -> NamedLink {
        let rate = |mbit| Rate { bits_per_second: mbit * 1_000_000 };
        NamedLink {
            name: name.to_owned(),
            device: DeviceName::parse(name).unwrap(),
            rtt: Duration::from_millis(rtt),
            down: rate(down),
            up: rate(1),
            mtu: None,
            price,
            fill: Fill::Off,
            wish,
        }
    }

    #[test]
    fn the_use_of_a_link_follows_from_its_price_its_round_trip_and_its_rate() {
        let lte = link("lte", 80, 8, Price::Free, UseWish::Auto);
        let used = |rtt, down, price, wish| {
            let plans = LinkPlan::all(&[lte.clone(), link("other", rtt, down, price, wish)]);
            assert_eq!(plans[0].used, LinkUse::Preferred);
            plans[1].used
        };
        let (free, metered) = (Price::Free, Price::Metered);
        assert_eq!(used(600, 20, free, UseWish::Auto), LinkUse::Bulk);
        assert_eq!(used(600, 20, metered, UseWish::Auto), LinkUse::Backup);
        assert_eq!(used(100, 8, free, UseWish::Auto), LinkUse::Always);
        assert_eq!(used(100, 8, metered, UseWish::Auto), LinkUse::Backup);
        assert_eq!(used(600, 2, free, UseWish::Auto), LinkUse::Backup);
        assert_eq!(used(600, 2, metered, UseWish::Always), LinkUse::Always);
        assert_eq!(used(100, 8, free, UseWish::Backup), LinkUse::Backup);
    }

    #[test]
    fn rates_add_up_where_links_carry_bytes_together_and_a_standby_counts_alone() {
        let (free, metered) = (Price::Free, Price::Metered);
        let plans = LinkPlan::all(&[
            link("one", 80, 8, free, UseWish::Auto),
            link("two", 90, 10, free, UseWish::Auto),
            link("geo", 600, 20, metered, UseWish::Auto),
        ]);
        let down = |works: &[&str]| {
            LinkPlan::in_use(&plans, |name| works.contains(&name)).map(|rates| rates.down.bits_per_second / 1_000_000)
        };
        assert_eq!(down(&["one", "two", "geo"]), Some(18));
        assert_eq!(down(&["two", "geo"]), Some(10));
        assert_eq!(down(&["geo"]), Some(20));
        assert_eq!(down(&[]), None, "nothing is known of a link that does not work");
        assert_eq!(LinkPlan::most_on_the_way(&plans), Some(1_500_000), "the satellite alone has more than both others");
        assert_eq!(LinkPlan::most_on_the_way(&plans[..2]), Some(202_500), "18 Mbit/s x 90 ms");
    }

    #[test]
    fn a_slow_link_is_not_dead_and_a_metered_one_is_seldom_probed() {
        let plan = |rtt, price| LinkPlan::of(&link("one", rtt, 8, price, UseWish::Auto), None);
        assert_eq!(plan(600, Price::Free).dead_after, Duration::from_millis(2200));
        assert_eq!(plan(1000, Price::Free).dead_after, Duration::from_secs(3));
        assert!(plan(80, Price::Metered).idle_probe > plan(80, Price::Free).idle_probe * 10);
    }
}
