//! Whose bytes are they? Lines of streams become sums of groups.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use longhaul_config::ClientGroup;
use serde::{Deserialize, Serialize};

use super::account::{Account, GroupReport};
use super::billed::{Billed, Moved};
use super::unbilled::Unbilled;
use super::who::WhoHour;
use crate::why::{CostReport, Crossed};

/// A stream without a line for so long has gone with its Envoy. One that is under way has a line each 10 s.
const FORGET_S: u64 = 60;
/// The accounts that no group has.
const UNNAMED: [&str; 2] = [ClientGroup::OTHERS, GroupReport::NO_CLIENT];
/// The streams that are remembered while they are under way. Those beyond count at their end alone.
const MOST_STREAMS: usize = 100_000;

/// The accounts of all groups.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Ledger {
    accounts: BTreeMap<String, Account>,
    /// The counts of lines of streams under way.
    #[serde(skip)]
    streams: HashMap<String, Counted>,
    #[serde(skip)]
    forgot_s: u64,
    #[serde(skip)]
    unbilled: Unbilled,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    down: u64,
    up: u64,
    at_s: u64,
}

impl Ledger {
    /// Counts a line at a time, in seconds since 1970. Adds what is new in it to the hour.
    pub fn count(&mut self, billed: Billed, groups: &[ClientGroup], at_s: u64, hour: Option<&mut WhoHour>) {
        let moved = self.moved(billed, groups, at_s);
        if let Some(hour) = hour {
            hour.add(&moved);
        }
    }

    /// Counts a line. Returns what is new in it.
    fn moved(&mut self, billed: Billed, groups: &[ClientGroup], at_s: u64) -> Moved {
        let before = self.streams.remove(&billed.stream).unwrap_or_default();
        let (mut down, mut up) = (billed.down.saturating_sub(before.down), billed.up.saturating_sub(before.up));
        if !billed.ended {
            if self.streams.len() < MOST_STREAMS {
                self.streams.insert(billed.stream, Counted { down: billed.down, up: billed.up, at_s });
            } else {
                (down, up) = (0, 0);
            }
        }
        let name = group_of(groups, billed.client).map_or(ClientGroup::OTHERS, |group| &group.name);
        self.accounts.entry(name.to_owned()).or_default().add(down, up, at_s);
        self.unbilled.bill(down, up);
        Moved { client: billed.client, site: billed.site, down, up }
    }

    /// Takes the use of the link since the start of the run, at a time in seconds since 1970. Returns true if no client has a part
    /// of it.
    pub fn cross(&mut self, costs: &CostReport, at_s: u64) -> bool {
        let new = self.unbilled.read(costs.crossed, at_s);
        self.accounts.entry(GroupReport::NO_CLIENT.to_owned()).or_default().add(new.down, new.up, at_s);
        new != Crossed::default()
    }

    /// Begins each period that has turned. Forgets groups that are no more, and streams that have gone.
    pub fn tend(&mut self, groups: &[ClientGroup], at_s: u64) {
        let is_one = |name: &str| UNNAMED.contains(&name) || groups.iter().any(|group| group.name == name);
        self.accounts.retain(|name, _| is_one(name));
        self.accounts.values_mut().for_each(|account| account.turn(at_s));
        if self.forgot_s + FORGET_S < at_s || at_s < self.forgot_s {
            self.streams.retain(|_, counted| counted.at_s + FORGET_S >= at_s);
            self.forgot_s = at_s;
        }
    }

    /// Returns the groups beyond their quota.
    #[must_use]
    pub fn slow(&self, groups: &[ClientGroup]) -> BTreeSet<String> {
        let is_slow =
            |group: &&ClientGroup| self.accounts.get(&group.name).is_some_and(|account| account.is_beyond(group));
        groups.iter().filter(is_slow).map(|group| group.name.clone()).collect()
    }

    /// Returns the account of each group in the order of the file, of the clients in no group, and of no client.
    #[must_use]
    pub fn report(&self, groups: &[ClientGroup]) -> Vec<GroupReport> {
        let none = Account::default();
        let of = |name: &str| self.accounts.get(name).unwrap_or(&none);
        let named = groups.iter().map(|group| of(&group.name).report(Some(group)));
        let others = of(ClientGroup::OTHERS).report(None);
        named.chain([others, of(GroupReport::NO_CLIENT).report_of_no_client()]).collect()
    }
}

fn group_of(groups: &[ClientGroup], client: IpAddr) -> Option<&ClientGroup> {
    groups.iter().find(|group| group.ranges.iter().any(|range| range.contains(&client)))
}

#[cfg(test)]
mod tests {
    use longhaul_config::{Bytes, Period, Quota};

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn groups() -> Vec<ClientGroup> {
        let quota = Some(Quota { size: Bytes(1000), per: Period::Day });
        let crew = ["192.0.2.64/26".parse().unwrap(), "2001:db8::/56".parse().unwrap()].to_vec();
        let bridge = ["192.0.2.0/28".parse().unwrap()].to_vec();
        vec![
            ClientGroup { name: "bridge".to_owned(), ranges: bridge, weight: 4, quota: None },
            ClientGroup { name: "crew".to_owned(), ranges: crew, weight: 1, quota },
        ]
    }

    fn line(stream: &str, ended: bool, client: &str, down: u64) -> Billed {
        let client = client.parse().unwrap();
        Billed { stream: stream.to_owned(), ended, client, down, up: 1, site: "www.example.org".to_owned() }
    }

    fn downs(ledger: &Ledger) -> Vec<u64> {
        ledger.report(&groups()).iter().map(|group| group.today.down).collect()
    }

    #[test]
    fn each_byte_counts_once_for_the_group_of_its_client() {
        let mut ledger = Ledger::default();
        for one in [
            line("a", false, "192.0.2.70", 300),
            line("a", false, "192.0.2.70", 700),
            line("b", true, "192.0.2.7", 50),
            line("c", true, "198.51.100.1", 9),
            line("d", true, "2001:db8::7", 5),
        ] {
            ledger.count(one, &groups(), NOW, None);
        }
        assert_eq!(downs(&ledger), [50, 705, 9, 0]);
        assert!(ledger.slow(&groups()).is_empty());
        assert_eq!(ledger.moved(line("a", true, "192.0.2.70", 1000), &groups(), NOW).down, 300);
        assert_eq!(downs(&ledger), [50, 1005, 9, 0]);
        assert_eq!(ledger.slow(&groups()), BTreeSet::from(["crew".to_owned()]));
        let saved = serde_json::to_string(&ledger).unwrap();
        let mut next: Ledger = serde_json::from_str(&saved).unwrap();
        next.tend(&groups(), NOW + 1);
        assert_eq!((downs(&next), next.slow(&groups()).len()), (vec![50, 1005, 9, 0], 1), "a restart keeps them");
        next.tend(&groups(), NOW + 86_400);
        assert!(next.slow(&groups()).is_empty() && downs(&next) == [0, 0, 0, 0]);
    }

    #[test]
    fn bytes_of_no_client_stand_in_a_row_of_their_own_and_outlive_restarts() {
        let mut ledger = Ledger::default();
        let cross = |down| CostReport { crossed: Crossed { down, up: 0 }, ..CostReport::default() };
        assert!(!ledger.cross(&cross(0), NOW));
        ledger.count(line("a", true, "192.0.2.70", 700), &groups(), NOW + 1, None);
        assert!(!ledger.cross(&cross(1000), NOW + 2) && ledger.cross(&cross(1000), NOW + 20));
        assert_eq!(downs(&ledger), [0, 700, 0, 300]);
        assert!(ledger.report(&groups()).last().unwrap().weight.is_none());
        let saved = serde_json::to_string(&ledger).unwrap();
        let mut next: Ledger = serde_json::from_str(&saved).unwrap();
        next.tend(&groups(), NOW + 30);
        assert_eq!(downs(&next), [0, 700, 0, 300]);
    }

    #[test]
    fn streams_that_have_gone_are_forgotten_and_those_under_way_are_not() {
        let mut ledger = Ledger::default();
        ledger.count(line("gone", false, "192.0.2.7", 10), &groups(), NOW, None);
        ledger.tend(&groups(), NOW + 70);
        ledger.count(line("new", false, "192.0.2.7", 10), &groups(), NOW + 100, None);
        ledger.tend(&groups(), NOW + 140);
        assert_eq!(ledger.streams.keys().collect::<Vec<_>>(), ["new"]);
        ledger.tend(&groups()[..1], NOW + 141);
        assert_eq!(ledger.report(&groups()[..1]).len(), 3);
    }
}
