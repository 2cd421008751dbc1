//! The state of a run on which shares of the link depend. A ground hears of its remotes' part by reports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;

use longhaul_config::Rate;
use longhaul_derive::{Limit, RatesInUse};

use crate::weights::Weights;

/// The state of a run on which shares of the link depend.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Weighing {
    /// The groups of a remote's clients that are beyond their quota, by name.
    pub slow: BTreeSet<String>,
    /// The weights of clients that the remotes of a ground report, by the name of the remote.
    pub weights: BTreeMap<String, Weights>,
    /// The rates towards the clients of the links in use, as remotes with several report them.
    pub rates: BTreeMap<String, Rate>,
    /// The rates of the links in use of a remote with several. None: those of the first one.
    pub in_use: Option<RatesInUse>,
    /// The limit that fits what the link carries now, in percent of the stated one. None: it carries what is stated. Only the
    /// filter `link-share` follows it.
    pub carried_percent: Option<u32>,
}

impl Weighing {
    /// Returns the bytes a second that a ground sends at most to `remote`, or a remote to its ground. They have all headers, and
    /// the link carries what is stated.
    #[must_use]
    pub fn most_sent(&self, limit: &Limit, remote: Option<&str>) -> u64 {
        let rate = match remote {
            Some(name) => self.rates.get(name).copied(),
            None => self.in_use.map(|rates| rates.up),
        };
        rate.map_or(limit.wire_bytes_per_second, |rate| limit.wire_bytes_at(rate))
    }
}

/// One report of a remote: the path and the query of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteReport {
    /// The weights of its clients.
    Weights(Weights),
    /// The rate towards them of the links in use of a remote with several. None: the ground's `link` states it.
    Down(Option<Rate>),
}

impl RemoteReport {
    /// The path of a rate, in bits a second behind a `?`.
    pub(crate) const RATE_PATH: &str = "/rate";
    /// The rates that a ground believes, in bits a second. A wrong one harms the link of this remote alone.
    const RATES: RangeInclusive<u64> = 8_000..=100_000_000_000;

    /// Reads the path and the query of a report. None: it is none, or out of bounds.
    #[must_use]
    pub fn parse(target: &str) -> Option<Self> {
        let (path, query) = target.split_once('?')?;
        match path {
            Weights::PATH => Weights::parse(query).map(Self::Weights),
            Self::RATE_PATH => {
                if query.is_empty() {
                    return Some(Self::Down(None));
                }
                let bits_per_second = query.parse().ok().filter(|rate| Self::RATES.contains(rate))?;
                Some(Self::Down(Some(Rate { bits_per_second })))
            }
            _ => None,
        }
    }
}

impl fmt::Display for RemoteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Weights(weights) => write!(f, "{}?{weights}", Weights::PATH),
            Self::Down(None) => write!(f, "{}?", Self::RATE_PATH),
            Self::Down(Some(rate)) => write!(f, "{}?{}", Self::RATE_PATH, rate.bits_per_second),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written_and_nothing_else_is_one() {
        for text in ["/weights?", "/weights?40=192.0.2.0/28", "/rate?20000000", "/rate?"] {
            assert_eq!(RemoteReport::parse(text).unwrap().to_string(), text);
        }
        for text in ["/weights", "/?40=192.0.2.0/28", "/rate?20mbit", "/rate?-1", "/rate?7999", "/rate?100000000001"] {
            assert_eq!(RemoteReport::parse(text), None, "{text}");
        }
    }
}
