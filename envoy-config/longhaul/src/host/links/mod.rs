//! Watches several links (`links`), and keeps routes and endpoints of Multipath TCP for those that work.
//!
//! [`judge`] decides whether a link works, and [`setup`] what the kernel needs then. Both are pure. This module reads signs,
//! runs what follows from them, writes a line for each change, and undoes everything at its end.

mod judge;
mod latecomers;
mod link;
mod machine;
mod paths;
mod probe;
mod setup;
mod stand_in;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, io, mem, process};

use longhaul_config::{Family, Host, Settings, show_duration};
use longhaul_derive::{HostFacts, MultipathUse, derive};
use longhaul_observe::measure::{Connection, Kernel};
use longhaul_observe::report::LinkState;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use judge::Step;
use latecomers::Latecomers;
use link::Link;
use paths::Paths;
use setup::{Item, Places, Present};

/// The time between two looks at the links.
const TICK: Duration = Duration::from_millis(100);
/// The same without several links, when only the file and signals matter.
const LONG_TICK: Duration = Duration::from_millis(500);
/// The time between two looks at addresses and at the file.
const SELDOM: Duration = Duration::from_secs(1);

/// The watch, in a thread of its own.
pub(crate) struct LinkWatch {
    states: Arc<Mutex<Vec<LinkState>>>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl LinkWatch {
    /// Starts the watch for the links of a file, which it follows. A signal to end undoes everything, and ends the process.
    ///
    /// # Errors
    /// There can be no thread, or no signals.
    pub(crate) fn start(settings: &Settings) -> io::Result<Self> {
        let (states, stop, ended) = <(Arc<Mutex<Vec<LinkState>>>, Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&ended))?;
        }
        let mut file = Followed::new(&settings.file);
        let mut links = Links::of(settings);
        let (published, told) = (Arc::clone(&states), Arc::clone(&stop));
        let thread = thread::Builder::new().name("links".to_owned()).spawn(move || {
            links.clean();
            let mut told_at: Option<Instant> = None;
            loop {
                if ended.load(Ordering::Relaxed) {
                    links.undo();
                    process::exit(0);
                }
                if told.load(Ordering::Relaxed) {
                    return links.undo();
                }
                if let Some(settings) = file.changed() {
                    links.follow(&settings);
                }
                links.turn();
                if told_at.is_none_or(|at| at.elapsed() >= SELDOM) {
                    told_at = Some(Instant::now());
                    *published.lock().unwrap_or_else(PoisonError::into_inner) = links.states();
                }
                let pause = if links.each.is_empty() { LONG_TICK } else { TICK };
                probe::wait(links.each.iter().map(|link| &link.probes), pause);
            }
        })?;
        Ok(Self { states, stop, thread })
    }

    /// Returns the present state of each link.
    pub(crate) fn states(&self) -> Vec<LinkState> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Undoes everything.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}

/// A file that is read again when it has changed.
struct Followed {
    file: PathBuf,
    read_at: Option<SystemTime>,
    looked: Instant,
}

impl Followed {
    fn new(file: &Path) -> Self {
        Self { file: file.to_owned(), read_at: modified(file), looked: Instant::now() }
    }

    /// Returns the settings of a changed file. One that is refused changes nothing.
    fn changed(&mut self) -> Option<Settings> {
        if self.looked.elapsed() < SELDOM {
            return None;
        }
        self.looked = Instant::now();
        let now = modified(&self.file);
        if now == mem::replace(&mut self.read_at, now) {
            return None;
        }
        longhaul_config::load(&self.file).ok().map(|loaded| loaded.settings)
    }
}

fn modified(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|metadata| metadata.modified()).ok()
}

/// All links.
struct Links {
    each: Vec<Link>,
    multipath: bool,
    /// The address of the ground in the file, if it has one, and its port.
    ground: Option<(Option<IpAddr>, u16)>,
    /// The address at which connections found it.
    found: Option<SocketAddr>,
    applied: Vec<Item>,
    latecomers: Latecomers,
    kernel: Option<Kernel>,
    start: Instant,
    looked: Option<Instant>,
    /// The last message about a command that failed.
    failed: String,
}

impl Links {
    fn of(settings: &Settings) -> Self {
        let mut links = Self {
            each: Vec::new(),
            multipath: false,
            ground: None,
            found: None,
            applied: Vec::new(),
            latecomers: Latecomers::default(),
            kernel: Kernel::open().ok(),
            start: Instant::now(),
            looked: None,
            failed: String::new(),
        };
        links.follow(settings);
        links
    }

    /// Takes over changed settings. Links that stay as they were keep their state.
    fn follow(&mut self, settings: &Settings) {
        let derived = derive(settings, &HostFacts::unknown());
        self.multipath = matches!(derived.multipath, MultipathUse::Opens(_));
        self.ground = settings.role.grounds().first().map(|ground| match ground.host {
            Host::Address(address) => (Some(address), ground.port),
            Host::Name(_) => (None, ground.port),
        });
        let now = self.start.elapsed();
        let mut before = mem::take(&mut self.each);
        self.each = derived
            .links
            .into_iter()
            .map(|plan| match before.iter().position(|link| link.plan == plan) {
                Some(at) => before.swap_remove(at),
                None => Link::new(plan, now),
            })
            .collect();
        (self.found, self.looked) = (None, None);
    }

    /// Removes what a watch that was killed has left. Takes over its endpoints: connections that are open need them.
    fn clean(&mut self) {
        self.applied = machine::endpoints();
        if !self.each.is_empty() {
            // Most of it is not there.
            for command in setup::clean(self.each.len()) {
                let _ = machine::run(&command);
            }
        }
    }

    /// Looks at all links once, and does what follows.
    fn turn(&mut self) {
        if self.each.is_empty() && self.applied.is_empty() {
            return;
        }
        if self.looked.is_none_or(|looked| looked.elapsed() >= SELDOM) {
            self.looked = Some(Instant::now());
            // A ground with a name may have any address, until connections have found it.
            let may_have_ipv6 = self.ground_at().is_none_or(|ground| ground.is_ipv6());
            let (places, family) = (machine::places(may_have_ipv6), self.family());
            for link in &mut self.each {
                let places = places.get(link.plan.device().as_str()).copied().unwrap_or_default();
                let address = |places: &Places| places.of(family).map(|place| place.address);
                if address(&places) != address(&link.places) {
                    link.probes.clear();
                }
                link.places = places;
            }
            if self.latecomers.are_due(self.start.elapsed()) {
                self.run(setup::look_again());
            }
        }
        self.apply();
        let connections = self.connections();
        let now = self.start.elapsed();
        // Nothing can be probed before connections have found a ground that has a name.
        let Some(ground) = self.ground_at() else { return };
        let family = Family::of(ground.ip());
        for link in &mut self.each {
            let signs = link.signs(family, &connections);
            match link.judge.look(now, signs) {
                Step::Wait => {}
                Step::Probe => {
                    if let Some(place) = link.places.of(family) {
                        link.probes.send(link.plan.device().as_str(), place.address, ground);
                    }
                }
                Step::Died(silent) => {
                    link.deaths += 1;
                    link.changed_at = since_1970();
                    let (name, device) = (&link.plan.link.name, link.plan.device());
                    if signs.present {
                        let silent = show_duration(in_tenths(silent));
                        say(&format!("the link {name} is down: no sign of life on {device} for {silent}"));
                    } else {
                        say(&format!("the link {name} is down: {device} has no address"));
                    }
                }
                Step::Restored(after) => {
                    link.changed_at = since_1970();
                    let after = show_duration(in_tenths(after));
                    say(&format!("the link {} works again after {after}", link.plan.link.name));
                }
            }
        }
        self.apply();
        if self.multipath {
            let all = self.each.iter().fold(Paths::default(), |sum, link| sum + link.paths);
            for link in &mut self.each {
                link.judge_paths(now, all - link.paths);
            }
        }
    }

    /// Returns the connections to the ground.
    fn connections(&mut self) -> Vec<Connection> {
        let (Some(kernel), Some((_, port))) = (&self.kernel, self.ground) else { return Vec::new() };
        let connections = kernel.connections_to(port).unwrap_or_default();
        let is_at = |ip: IpAddr, link: &Link| link.places.of(Family::of(ip)).is_some_and(|place| ip == place.address);
        let own = |ip: IpAddr| self.each.iter().any(|link| is_at(ip, link));
        if let Some(one) = connections.iter().find(|one| own(one.id.local.ip())) {
            self.found = Some(one.id.remote);
        }
        connections
    }

    /// Returns the socket of the ground. A ground with a name is where connections found it.
    fn ground_at(&self) -> Option<SocketAddr> {
        let (address, port) = self.ground?;
        address.map(|address| (address, port).into()).or(self.found)
    }

    /// Returns the family of the ground's address.
    fn family(&self) -> Family {
        self.ground_at().map_or(Family::Ipv4, |ground| Family::of(ground.ip()))
    }

    /// Tells the kernel what has changed.
    fn apply(&mut self) {
        let present: Vec<Present> = self.each.iter().map(Link::present).collect();
        self.reach(setup::wanted(&present, self.family(), self.multipath));
    }

    fn reach(&mut self, wanted: Vec<Item>) {
        self.run(setup::change(&self.applied, &wanted));
        let endpoints = |items: &[Item]| items.iter().filter(|item| matches!(item, Item::Endpoint { .. })).count();
        self.latecomers.changed(self.start.elapsed(), endpoints(&self.applied), endpoints(&wanted));
        self.applied = wanted;
    }

    /// Runs commands. Writes a fault of one that makes something, once.
    fn run(&mut self, commands: Vec<String>) {
        for command in commands {
            let removes = command.contains(" del ") || command.contains(" flush ");
            if let Err(error) = machine::run(&command)
                && !removes
                && error != self.failed
            {
                say(&format!("warning: {error}"));
                self.failed = error;
            }
        }
    }

    fn undo(&mut self) {
        self.reach(setup::kept(&self.applied));
    }

    /// Returns the state of each link. Call it often: it counts what a standby carries in between.
    fn states(&mut self) -> Vec<LinkState> {
        if self.each.is_empty() {
            return Vec::new();
        }
        let bytes = machine::bytes();
        let (now, family) = (self.start.elapsed(), self.family());
        let no_other_works = !self.each.iter().any(|link| link.judge.is_alive() && !link.plan.used.stands_by());
        for link in &mut self.each {
            let stands_in = no_other_works && link.judge.is_alive() && link.plan.used.stands_by();
            if let Some(bytes) = bytes.get(link.plan.device().as_str()) {
                link.stand_in.add(now, *bytes, stands_in);
            }
        }
        self.each.iter().map(|link| link.state(family, &bytes)).collect()
    }
}

fn in_tenths(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis() / 100 * 100).unwrap_or(u64::MAX))
}

fn since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Writes a line for the journal.
fn say(text: &str) {
    eprintln!("{text}");
}
