//! Lowers the limit of a pair while its link carries less than `link` states, as in rain, and raises it again.
//!
//! A thread reads the kernel's figures of the connections each second, and sends nothing. Only the filter `link-share` of the
//! native engine takes a new limit for streams that run, so with wasm filters nobody watches.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use longhaul_config::{Role, Settings};
use longhaul_derive::Derived;
use longhaul_observe::measure::{Carried, Connection, Kernel, PairEnd};
use longhaul_render::Weighing;

use super::events::Event;
use super::log::Level;
use super::say;

/// The pause between two readings.
const PAUSE: Duration = Duration::from_secs(1);

/// The thread that watches. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct RateWatch {
    changes: Sender<Option<Followed>>,
    followed: Option<Followed>,
}

/// The links of this box that have a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Followed {
    end: PairEnd,
    links: Vec<Limited>,
}

/// One link with a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Limited {
    /// The name of the link in the configuration of the filter `link-share`.
    name: String,
    /// The remote's end of the pipe, as the ground sees it. None: all connections of this box cross the link.
    pipe: Option<SocketAddr>,
    bytes_per_second: u64,
}

impl Followed {
    /// Returns the links of this box. None: nothing limits them, or the kernel does not know whose link a connection takes.
    fn of(settings: &Settings, derived: &Derived, weighing: &Weighing, is_native: bool) -> Option<Self> {
        let limit = derived.neighbours.sent_by(&settings.role).filter(|_| is_native)?;
        let limited = |name: &str, pipe| Limited {
            name: name.to_owned(),
            pipe,
            bytes_per_second: weighing.most_sent(limit, Some(name).filter(|name| !name.is_empty())),
        };
        let links: Vec<Limited> = match &settings.role {
            Role::Ground(ground) => match ground.remotes.as_slice() {
                [remote] if remote.is_one() => vec![limited(&remote.to_string(), None)],
                _ => weighing.pipes.iter().map(|(name, pipe)| limited(name, Some(*pipe))).collect(),
            },
            // All its grounds are at the other end of the same link.
            Role::Remote(_) => vec![limited("", None)],
            Role::Edge => Vec::new(),
        };
        let end = PairEnd::of(settings)?;
        (!links.is_empty()).then_some(Self { end, links })
    }
}

/// Returns the lines of the log about other limits. Between a fall and the end of the rise, there is none.
pub(super) fn lines(before: &BTreeMap<String, u32>, now: &BTreeMap<String, u32>) -> Vec<String> {
    let link = |name: &str| if name.is_empty() { "the link".to_owned() } else { format!("the link of {name}") };
    let falls = now.iter().filter(|(name, _)| !before.contains_key(*name)).map(|(name, percent)| {
        format!(
            "{} carries less than `link` states: the limit of `link.fill` is {percent}% until it carries more",
            link(name)
        )
    });
    let whole = before
        .keys()
        .filter(|name| !now.contains_key(*name))
        .map(|name| format!("{} carries what `link` states; the limit of `link.fill` is whole again", link(name)));
    falls.chain(whole).collect()
}

impl RateWatch {
    /// Starts the thread. It reports to `events` when another limit fits a link, in percent of the stated one.
    pub(super) fn start(events: Sender<Event>) -> io::Result<Self> {
        let (changes, next) = mpsc::channel();
        thread::Builder::new().name("rate".to_owned()).spawn(move || watch(&next, &events))?;
        Ok(Self { changes, followed: None })
    }

    /// Watches the links that these settings have.
    pub(super) fn follow(&mut self, settings: &Settings, derived: &Derived, weighing: &Weighing, is_native: bool) {
        let next = Followed::of(settings, derived, weighing, is_native);
        if next != self.followed {
            let _ = self.changes.send(next.clone());
            self.followed = next;
        }
    }
}

/// Watches what `changes` says, until the run ends.
fn watch(changes: &Receiver<Option<Followed>>, events: &Sender<Event>) {
    let (mut kernel, mut watched, start) = (None, Watched::default(), Instant::now());
    let (mut followed, mut due) = (None::<Followed>, start);
    loop {
        let change = match &followed {
            Some(_) => changes.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => changes.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match change {
            // The rule counts readings, so a change brings none before its time.
            Ok(change) if change.is_some() => {
                followed = change;
                continue;
            }
            Ok(_) => followed = None,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        due = Instant::now() + PAUSE;
        let said = match &followed {
            None => watched.look(start.elapsed(), &[], &[]),
            Some(Followed { end, links }) => {
                if kernel.is_none() {
                    kernel = opened();
                }
                let Some(kernel) = &kernel else { return };
                // A reading that fails is one of a busy kernel, and the next one counts.
                let Ok(connections) = end.read(kernel) else { continue };
                watched.look(start.elapsed(), links, &connections)
            }
        };
        for (link, percent) in said {
            if events.send(Event::Carried { link, percent }).is_err() {
                return;
            }
        }
    }
}

fn opened() -> Option<Kernel> {
    let fixed = |error| {
        say(Level::Info, &format!("the limit of `link.fill` is fixed: the kernel gives no figures: {error}"));
    };
    Kernel::open().map_err(fixed).ok()
}

/// The links, each with the state of its rule.
#[derive(Debug, Default)]
struct Watched(HashMap<String, Link>);

#[derive(Debug)]
struct Link {
    bytes_per_second: u64,
    carried: Carried,
    /// The last word about it.
    percent: u32,
}

impl Watched {
    /// Reads the connections of `links`. Returns the links with another limit, and the limit in percent of the stated one.
    fn look(&mut self, now: Duration, links: &[Limited], connections: &[Connection]) -> Vec<(String, u32)> {
        let mut said = Vec::new();
        self.0.retain(|name, link| {
            let same = |limited: &Limited| limited.name == *name && limited.bytes_per_second == link.bytes_per_second;
            let stays = links.iter().any(same);
            if !stays && link.percent < 100 {
                said.push((name.clone(), 100));
            }
            stays
        });
        let owners = owners(links, connections.iter().map(|one| one.id.remote));
        for limited in links {
            let of_link: Vec<Connection> = match limited.pipe {
                None => connections.to_vec(),
                Some(pipe) if owners.get(&address(pipe)) == Some(&1) => {
                    let own = |one: &&Connection| address(one.id.remote) == address(pipe);
                    connections.iter().filter(own).copied().collect()
                }
                Some(_) => continue,
            };
            let link = self.0.entry(limited.name.clone()).or_insert_with(|| Link {
                bytes_per_second: limited.bytes_per_second,
                carried: Carried::of(limited.bytes_per_second),
                percent: 100,
            });
            let percent = link.carried.add(now, &of_link);
            if percent != link.percent {
                link.percent = percent;
                said.push((limited.name.clone(), percent));
            }
        }
        said
    }
}

/// Returns the number of remotes at each address, by their pipes that are open. The kernel cannot tell apart those behind one NAT.
fn owners(links: &[Limited], ends: impl Iterator<Item = SocketAddr>) -> HashMap<IpAddr, usize> {
    let of = |end: SocketAddr| (address(end), end.port());
    let open: HashSet<(IpAddr, u16)> = ends.map(of).collect();
    let mut owners = HashMap::new();
    for pipe in links.iter().filter_map(|limited| limited.pipe).filter(|pipe| open.contains(&of(*pipe))) {
        *owners.entry(address(pipe)).or_default() += 1;
    }
    owners
}

/// Returns an address as Envoy writes it. A socket of both families has those of IPv4 as IPv6 addresses.
fn address(end: SocketAddr) -> IpAddr {
    end.ip().to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_behind_an_address_of_its_own_is_known_by_its_open_pipe() {
        let limited = |name: &str, pipe: &str| Limited {
            name: name.to_owned(),
            pipe: Some(pipe.parse().unwrap()),
            bytes_per_second: 1,
        };
        let links = [
            limited("ship.example", "192.0.2.1:1"),
            limited("boat.example", "192.0.2.2:1"),
            limited("ferry.example", "192.0.2.2:2"),
            limited("barge.example", "192.0.2.1:2"),
        ];
        // The barge has left, and the ship has its address.
        let ends =
            ["[::ffff:192.0.2.1]:1", "192.0.2.1:7", "192.0.2.2:1", "192.0.2.2:2"].map(|end| end.parse().unwrap());
        let owners = owners(&links, ends.into_iter());
        let number = |address: &str| owners.get(&address.parse::<IpAddr>().unwrap());
        assert_eq!((number("192.0.2.1"), number("192.0.2.2")), (Some(&1), Some(&2)));
    }

    #[test]
    fn the_log_says_when_a_lower_limit_begins_and_when_it_ends() {
        let of = |name: &str, percent| BTreeMap::from([(name.to_owned(), percent)]);
        let none = BTreeMap::new();
        assert!(lines(&none, &of("", 55))[0].starts_with("the link carries less"));
        assert!(lines(&none, &of("ship.example", 55))[0].contains("link of ship.example carries less"));
        assert!(lines(&of("", 95), &none)[0].contains("whole again"));
        assert!(lines(&of("", 55), &of("", 60)).is_empty() && lines(&none, &none).is_empty());
    }
}
