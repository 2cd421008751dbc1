//! Weights of clients, as a remote decides them and as it reports them to its ground.

use std::collections::BTreeSet;
use std::fmt;

use ipnet::IpNet;
use longhaul_config::ClientGroup;

/// The weight of a client in no group, in tenths.
pub(crate) const USUAL: u32 = 10;
/// The most ranges that a ground takes of a remote. `clients.ranges` has the same bound.
const MOST_RANGES: usize = 128;
/// The largest weight in tenths: ten times the largest `clients.weight`.
const MOST: u32 = 100 * USUAL;

/// Clients with a weight of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Weighed {
    /// The weight of each of them, in tenths: a client in no group has 10.
    pub tenths: u32,
    /// The clients.
    pub ranges: Vec<IpNet>,
}

/// The weights of the clients of one link. Ranges of different groups do not overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Weights(pub(crate) Vec<Weighed>);

impl Weights {
    /// The path at which a remote tells its ground the weights of its clients, behind a `?`.
    pub(crate) const PATH: &str = "/weights";

    /// Returns the weights of groups. Those in `slow` are beyond their quota, and have a tenth of the weight.
    #[must_use]
    pub(crate) fn of(groups: &[ClientGroup], slow: &BTreeSet<String>) -> Self {
        let weighed = groups.iter().map(|group| Weighed {
            tenths: if slow.contains(&group.name) { group.weight } else { group.weight * USUAL },
            ranges: group.ranges.clone(),
        });
        Self(weighed.filter(|group| group.tenths != USUAL).collect())
    }

    /// Reads what a remote tells (see [`fmt::Display`]). None if anything in it is wrong or out of bounds: the other end may be
    /// of a later version.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let groups = text.split(';').filter(|group| !group.is_empty()).map(|group| {
            let (tenths, ranges) = group.split_once('=')?;
            let tenths = tenths.parse().ok().filter(|tenths| (1..=MOST).contains(tenths))?;
            let ranges = ranges.split(',').map(|range| range.parse().ok()).collect::<Option<Vec<IpNet>>>()?;
            Some(Weighed { tenths, ranges })
        });
        let this = Self(groups.collect::<Option<_>>()?);
        (this.0.iter().map(|group| group.ranges.len()).sum::<usize>() <= MOST_RANGES).then_some(this)
    }
}

impl fmt::Display for Weights {
    /// Writes the weights as a remote tells them: `40=192.0.2.0/28,192.0.2.64/28;1=2001:db8::/56`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Weighed { tenths, ranges }) in self.0.iter().enumerate() {
            write!(f, "{}{tenths}=", if index == 0 { "" } else { ";" })?;
            for (index, range) in ranges.iter().enumerate() {
                write!(f, "{}{range}", if index == 0 { "" } else { "," })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, weight: u32, range: &str) -> ClientGroup {
        ClientGroup { name: name.to_owned(), ranges: vec![range.parse().unwrap()], weight, quota: None }
    }

    #[test]
    fn a_group_beyond_its_quota_has_a_tenth_of_its_weight() {
        let groups =
            [group("bridge", 4, "192.0.2.0/28"), group("crew", 1, "192.0.2.64/26"), group("cabin", 1, "2001:db8::/56")];
        let told = |slow: &[&str]| Weights::of(&groups, &slow.iter().map(ToString::to_string).collect()).to_string();
        assert_eq!(told(&[]), "40=192.0.2.0/28");
        assert_eq!(told(&["crew"]), "40=192.0.2.0/28;1=192.0.2.64/26");
        assert_eq!(told(&["bridge", "cabin"]), "4=192.0.2.0/28;1=2001:db8::/56");
        assert_eq!(Weights::of(&groups[1..], &BTreeSet::new()), Weights::default());
    }

    #[test]
    fn a_ground_reads_what_a_remote_tells_and_nothing_beyond_the_bounds() {
        for text in ["", "40=192.0.2.0/28,192.0.2.64/28;1=2001:db8::/56"] {
            assert_eq!(Weights::parse(text).unwrap().to_string(), text);
        }
        for text in ["40", "0=192.0.2.0/28", "1001=192.0.2.0/28", "40=", "40=192.0.2.0/28,", "40=a", "4e1=192.0.2.0/28"]
        {
            assert_eq!(Weights::parse(text), None, "{text}");
        }
        let ranges = |count: u32| (0..count).map(|at| format!("10.0.{at}.0/24")).collect::<Vec<_>>().join(",");
        assert!(Weights::parse(&format!("20={}", ranges(128))).is_some());
        assert_eq!(Weights::parse(&format!("20={}", ranges(129))), None);
    }
}
