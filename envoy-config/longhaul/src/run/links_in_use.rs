//! The rates of the links in use of a remote with several, by the report of `longhaul host --watch`.

use std::time::{Duration, Instant};

use longhaul_config::{Rate, Settings};
use longhaul_derive::{Derived, LinkPlan, RatesInUse};
use longhaul_observe::report::{HostReport, LinkState};
use longhaul_render::Weighing;

use super::publisher::now;

/// The time between two looks at the report.
const SELDOM: Duration = Duration::from_secs(1);

/// The rates of the links in use.
#[derive(Debug, Default)]
pub(super) struct LinksInUse {
    looked: Option<Instant>,
    rates: Option<RatesInUse>,
}

impl LinksInUse {
    /// Returns the present rates, or the last ones while no link works. None: there is one link, or nothing is shared, or the watch
    /// does not report. Call it often.
    pub(super) fn tend(&mut self, settings: &Settings, derived: &Derived) -> Option<RatesInUse> {
        if settings.links.is_empty() || derived.neighbours.sent_by(&settings.role).is_none() {
            *self = Self::default();
            return None;
        }
        if self.looked.is_none_or(|looked| looked.elapsed() >= SELDOM) {
            self.looked = Some(Instant::now());
            self.rates = rates(&derived.links, &HostReport::links(&settings.file, now()), self.rates);
        }
        self.rates
    }
}

fn rates(plans: &[LinkPlan], states: &[LinkState], last: Option<RatesInUse>) -> Option<RatesInUse> {
    if states.is_empty() {
        return None;
    }
    let works = |name: &str| states.iter().any(|state| state.name == name && state.alive);
    LinkPlan::in_use(plans, works).or(last)
}

/// Returns the lines of the log about other rates: of this remote, or of the remotes of a ground, where `stated` is that of `link`.
pub(super) fn lines(before: &Weighing, next: &Weighing, stated: Rate) -> Vec<String> {
    let own = next.in_use.filter(|rates| before.in_use != Some(*rates)).map(|rates| {
        format!("the links in use carry {} down and {} up, and the limit of `fill` follows", rates.down, rates.up)
    });
    let changed = next.rates.keys().filter(|name| before.down_of(name, stated) != next.down_of(name, stated));
    let of_remotes = changed.map(|name| {
        let down = next.down_of(name, stated);
        format!("{name} reports links in use that carry {down} down, and the limit of `fill` follows")
    });
    own.into_iter().chain(of_remotes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_says_when_the_rates_change_and_nothing_while_they_stay() {
        let rate = |mbit: u64| Rate { bits_per_second: mbit * 1_000_000 };
        let rates = |down, up| Some(RatesInUse { down: rate(down), up: rate(up) });
        let at = |in_use, down| {
            let mut weighing = Weighing::default();
            (weighing.in_use, weighing.rates) = (in_use, [("ship.example".to_owned(), down)].into());
            weighing
        };
        let lte = at(rates(8, 2), rate(8));
        let geo = at(rates(20, 5), rate(20));
        let lines = |before, next| super::lines(before, next, rate(1));
        let [own, of_ship] = lines(&lte, &geo).try_into().unwrap();
        assert!(own.contains("20mbit down and 5mbit up"), "{own}");
        assert!(of_ship.contains("ship.example reports links in use that carry 20mbit down"), "{of_ship}");
        assert_eq!(lines(&geo, &geo), Vec::<String>::new());
        assert_eq!(lines(&geo, &Weighing::default()), Vec::<String>::new(), "the watch has ended");
        assert_eq!(super::lines(&Weighing::default(), &at(None, rate(8)), rate(8)), Vec::<String>::new(), "as stated");
    }
}
