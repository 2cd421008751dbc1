//! The state of a run on which shares of the link depend. A ground hears of its remotes' part by reports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::slice;

use link_share::config::covered;
use longhaul_config::{PeerName, Rate, Role, Settings};
use longhaul_derive::{Limit, RatesInUse};

use crate::weights::Weights;

/// The state of a run on which shares of the link depend.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Weighing {
    /// The groups of a remote's clients that are beyond their quota, by name.
    pub slow: BTreeSet<String>,
    /// The weights of clients that the remotes of a ground report, by the name of the remote.
    pub(crate) weights: BTreeMap<String, Weights>,
    /// The rates towards the clients, as remotes report them: of their link, or of the links in use.
    pub rates: BTreeMap<String, Rate>,
    /// The rates of the links in use of a remote with several. None: those of the first one.
    pub in_use: Option<RatesInUse>,
    /// The limits that fit what the links carry now, in percent of the stated ones, by the name of the remote, or by none at a
    /// remote. Others carry what is stated. Only the filter `link-share` follows them.
    pub carried: BTreeMap<String, u32>,
    /// The ends of the pipes of remotes with one link, as a ground sees them, by the name of the remote.
    pub pipes: BTreeMap<String, SocketAddr>,
}

impl Weighing {
    /// Returns the bytes a second that a ground sends at most to `remote`, or a remote to its ground. Of the rate that a remote reports
    /// for its only link and that of the ground's file, the lower one counts. They have all headers, and
    /// the link carries what is stated.
    #[must_use]
    pub fn most_sent(&self, limit: &Limit, remote: Option<&str>) -> u64 {
        let stated = limit.wire_bytes_per_second;
        let Some(name) = remote else { return self.in_use.map_or(stated, |rates| limit.wire_bytes_at(rates.up)) };
        limit.wire_bytes_at(self.down_of(name, limit.link_rate()))
    }

    /// Returns the rate towards the clients of a remote, where `stated` is that of the ground's file. Of a remote with one link, the
    /// lower rate counts. Links in use may be faster together than the first one, which the ground states.
    #[must_use]
    pub fn down_of(&self, name: &str, stated: Rate) -> Rate {
        let reported = self.rates.get(name).copied().unwrap_or(stated);
        if self.pipes.contains_key(name) { reported.min(stated) } else { reported }
    }
}

impl Weighing {
    /// Returns what a remote with these settings reports, as targets of requests on the pipe.
    #[must_use]
    pub fn reports(&self, settings: &Settings) -> [String; 2] {
        let weights = RemoteReport::Weights(Weights::of(&settings.clients, &self.slow));
        let rate = if settings.links.is_empty() {
            RemoteReport::Link(settings.link.down)
        } else {
            // Without the watch of the links, the ground must forget the last rate.
            RemoteReport::Down(self.in_use.map(|rates| rates.down))
        };
        [weights.to_string(), rate.to_string()]
    }

    /// Adds the reports that a box of this role has heard. A ground believes the remotes of its file alone, and each for its own
    /// link.
    pub fn hear(&mut self, reports: Vec<HeardReport>, role: &Role) {
        let remotes = if let Role::Ground(ground) = role { ground.remotes.as_slice() } else { &[] };
        let [named, patterns] = names_and_patterns(remotes);
        let own = |of: &[String]| {
            let covered = |listed: &String| covered(listed, of.iter().map(String::as_str)).map(str::to_owned);
            named.iter().chain(&patterns).find_map(covered)
        };
        self.weights.retain(|name, _| own(slice::from_ref(name)).is_some());
        self.rates.retain(|name, _| own(slice::from_ref(name)).is_some());
        self.pipes.retain(|name, _| own(slice::from_ref(name)).is_some());
        for HeardReport { of, from, report } in reports {
            let Some(name) = own(&of) else { continue };
            match report {
                RemoteReport::Weights(weights) if weights == Weights::default() => drop(self.weights.remove(&name)),
                RemoteReport::Weights(weights) => drop(self.weights.insert(name, weights)),
                RemoteReport::Link(rate) => {
                    self.pipes.insert(name.clone(), from);
                    self.rates.insert(name, rate);
                }
                RemoteReport::Down(rate) => {
                    self.pipes.remove(&name);
                    match rate {
                        Some(rate) => drop(self.rates.insert(name, rate)),
                        None => drop(self.rates.remove(&name)),
                    }
                }
            }
        }
    }
}

/// Returns the names and the patterns of `remotes`. Names come first wherever a remote is looked up.
pub(crate) fn names_and_patterns(remotes: &[PeerName]) -> [Vec<String>; 2] {
    let (named, patterns): (Vec<&PeerName>, Vec<&PeerName>) = remotes.iter().partition(|remote| remote.is_one());
    [named, patterns].map(|remotes| remotes.into_iter().map(PeerName::to_string).collect())
}

/// A report of a remote, as its ground heard it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeardReport {
    /// The names in the certificate of the remote.
    of: Vec<String>,
    /// Its end of the pipe.
    from: SocketAddr,
    report: RemoteReport,
}

impl HeardReport {
    /// Parses what follows the mark of a line of Envoy: `NAMES ADDRESS TARGET`.
    #[must_use]
    pub fn parse(rest: &str) -> Option<Self> {
        let (names, rest) = rest.strip_prefix(' ')?.split_once(' ')?;
        let (from, target) = rest.split_once(' ')?;
        let of = names.split(',').map(str::to_owned).collect();
        Some(Self { of, from: from.parse().ok()?, report: RemoteReport::parse(target)? })
    }
}

/// One report of a remote: the path and the query of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RemoteReport {
    /// The weights of its clients.
    Weights(Weights),
    /// The rate towards them of a remote's only link.
    Link(Rate),
    /// The rate towards them of the links in use of a remote with several. None: the ground's `link` states it.
    Down(Option<Rate>),
}

impl RemoteReport {
    /// The paths of a rate, in bits a second behind a `?`.
    pub(crate) const LINK_PATH: &str = "/link";
    pub(crate) const RATE_PATH: &str = "/rate";
    /// The rates that a ground believes, in bits a second. A wrong one harms the link of this remote alone.
    const RATES: RangeInclusive<u64> = 8_000..=100_000_000_000;

    /// Reads the path and the query of a report. None: it is none, or out of bounds.
    fn parse(target: &str) -> Option<Self> {
        let (path, query) = target.split_once('?')?;
        let rate = || {
            let bits_per_second = query.parse().ok().filter(|rate| Self::RATES.contains(rate))?;
            Some(Rate { bits_per_second })
        };
        match path {
            Weights::PATH => Weights::parse(query).map(Self::Weights),
            Self::LINK_PATH => rate().map(Self::Link),
            Self::RATE_PATH if query.is_empty() => Some(Self::Down(None)),
            Self::RATE_PATH => rate().map(|rate| Self::Down(Some(rate))),
            _ => None,
        }
    }
}

impl fmt::Display for RemoteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Weights(weights) => write!(f, "{}?{weights}", Weights::PATH),
            Self::Link(rate) => write!(f, "{}?{}", Self::LINK_PATH, rate.bits_per_second),
            Self::Down(None) => write!(f, "{}?", Self::RATE_PATH),
            Self::Down(Some(rate)) => write!(f, "{}?{}", Self::RATE_PATH, rate.bits_per_second),
        }
    }
}

#[cfg(test)]
mod tests {
    use longhaul_config::load_text;

    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written_and_nothing_else_is_one() {
        for text in ["/weights?", "/weights?40=192.0.2.0/28", "/rate?20000000", "/rate?", "/link?2000000"] {
            assert_eq!(RemoteReport::parse(text).unwrap().to_string(), text);
        }
        for text in
            ["/weights", "/?40=192.0.2.0/28", "/rate?20mbit", "/rate?-1", "/rate?7999", "/link?100000000001", "/link?"]
        {
            assert_eq!(RemoteReport::parse(text), None, "{text}");
        }
        let heard = HeardReport::parse(" ship.example,a.example [2001:db8::7]:40000 /weights?40=192.0.2.0/28").unwrap();
        assert_eq!((heard.of[1].as_str(), heard.from.port()), ("a.example", 40000));
        for line in [" ship.example /weights?", " ship.example 192.0.2.7:1 /weights", " 192.0.2.7:1 /weights?"] {
            assert_eq!(HeardReport::parse(line), None, "{line}");
        }
    }

    /// A ground that accepts these remotes.
    fn ground(peers: &str) -> Role {
        let pem = concat!(env!("CARGO_MANIFEST_DIR"), "/../longhaul/tests/config/files/pep");
        let text = format!(
            "role: ground\nlink: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\nupstream: {{ resolvers: [192.0.2.53] }}\n\
             split: {{ peer: [{peers}], cert: {pem}.pem, key: {pem}.key, ca: {pem}.pem }}\n"
        );
        load_text("test.yaml".as_ref(), text).unwrap().settings.role
    }

    fn hear(known: &mut Weighing, of: &str, target: &str, role: &Role) {
        known.hear(vec![HeardReport::parse(&format!(" {of} 192.0.2.7:40000 {target}")).unwrap()], role);
    }

    fn words(known: &Weighing) -> Vec<String> {
        let weights = known.weights.iter().map(|(name, weights)| format!("{name} {weights}"));
        weights.chain(known.rates.iter().map(|(name, rate)| format!("{name} {rate}"))).collect()
    }

    #[test]
    fn a_ground_believes_its_own_remotes_alone_and_each_for_itself() {
        let (role, mut known) = (ground("ship.example, ferry.example, boat.example"), Weighing::default());
        for (of, target) in [
            ("ship.example", "/weights?40=192.0.2.0/28"),
            ("stranger.example", "/weights?1=192.0.2.0/24"),
            ("ferry.example", "/weights?20=192.0.2.0/28"),
            ("ship.example", "/rate?8000000"),
            ("ship.example", "/weights?1=192.0.2.0/28"),
            ("ship.example", "/rate?20000000"),
            ("ferry.example", "/rate?20000000"),
            ("ferry.example", "/rate?"),
            ("boat.example", "/link?8000000"),
            ("boat.example", "/link?9000000"),
        ] {
            hear(&mut known, of, target, &role);
        }
        let weights = ["ferry.example 20=192.0.2.0/28", "ship.example 1=192.0.2.0/28"];
        assert_eq!(words(&known), [&weights[..], &["boat.example 9mbit", "ship.example 20mbit"]].concat());
        assert_eq!(
            known.pipes.keys().collect::<Vec<_>>(),
            ["boat.example"],
            "the only one that says that it has one link"
        );
        let before = known.clone();
        known.hear(Vec::new(), &role);
        assert_eq!(known, before);
        known.hear(Vec::new(), &ground("ferry.example"));
        assert_eq!(words(&known), ["ferry.example 20=192.0.2.0/28"], "it has left the file");
        assert!(known.pipes.is_empty());
    }

    #[test]
    fn a_remote_that_a_pattern_covers_is_believed_for_its_own_name() {
        let (role, mut known) = (ground("\"*.example\", ship.example"), Weighing::default());
        hear(&mut known, "boat.example,ship.example", "/rate?8000000", &role);
        hear(&mut known, "boat.example", "/rate?9000000", &role);
        hear(&mut known, "boat.example.org", "/rate?9000000", &role);
        assert_eq!(words(&known), ["boat.example 9mbit", "ship.example 8mbit"], "a name comes before a pattern");
    }
}
