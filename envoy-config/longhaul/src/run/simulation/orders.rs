//! The set-up and the orders of a run, drawn from a seed.

use std::time::Duration;

use swarm::Swarm;

/// The numbers of a run.
#[derive(Debug, Clone)]
pub(super) struct SetUp {
    /// The time from the start of an Envoy until it is ready.
    pub(super) start: Duration,
    /// The time from the rename of a file until Envoy has read it, and until CoreDNS has.
    pub(super) read: Duration,
    /// The time that a program beside Envoy takes to end its requests.
    pub(super) end: Duration,
    /// `transport.drain_time` and `drain.time`.
    pub(super) drain: Duration,
    /// `drain.wait`.
    pub(super) wait: Duration,
    /// The time in which an Envoy must be ready: three minutes, and longer with a part of a processor.
    pub(super) patience: Duration,
}

/// The fault of a configuration, named after who notices it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// There is none.
    None,
    /// `longhaul` refuses the file.
    File,
    /// Envoy's validation refuses the bootstrap.
    Bootstrap,
    /// Envoy dies with this bootstrap, although it is valid.
    Deadly,
    /// Envoy refuses the clusters.
    Clusters,
    /// Envoy refuses the listeners.
    Listeners,
    /// CoreDNS refuses its file.
    Names,
}

/// The content of the configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Config {
    /// The part that only another Envoy can apply.
    pub(super) bootstrap: u8,
    /// The routes, and the clusters that they need.
    pub(super) route: u8,
    /// The part that CoreDNS reads.
    pub(super) names: u8,
    /// The part that the program beside Envoy reads. Zero: it does not run.
    pub(super) side: u8,
    pub(super) flaw: Flaw,
}

impl Config {
    /// The configuration at the start.
    pub(super) const FIRST: Self = Self { bootstrap: 0, route: 0, names: 0, side: 1, flaw: Flaw::None };
}

/// A child that something happens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Child {
    /// The Envoy that serves.
    Envoy,
    /// The Envoy that takes over.
    Successor,
    /// An Envoy that drains.
    Draining,
    /// CoreDNS.
    Names,
    /// The program beside Envoy.
    Side,
}

/// The fate of the next Envoy that starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The system cannot start it.
    NoStart,
    /// It is never ready.
    Hangs,
    /// It dies before it is ready.
    DiesEarly,
    /// It dies as soon as it is ready.
    DiesReady,
}

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Order {
    /// Nothing, for a while.
    Wait {
        /// How long.
        ms: u64,
    },
    /// The configuration file changes.
    Change(Config),
    /// The configuration file has its content at the start again.
    ChangeBack,
    /// A file beside the configuration changes, again and again.
    Noise {
        /// How long.
        ms: u64,
    },
    /// SIGHUP.
    Reload,
    /// SIGTERM.
    Drain,
    /// SIGINT.
    StopAtOnce,
    /// A child dies.
    Death(Child),
    /// A child responds to nothing any more, and ignores signals.
    Freeze(Child),
    /// Something happens to the next Envoy that starts.
    Next(Fate),
    /// The system cannot start CoreDNS and the program beside Envoy once.
    NoStart,
    /// Envoy reads and responds to nothing for a while.
    Busy {
        /// How long.
        ms: u64,
    },
    /// The disk is full after so many more files.
    FullDisk {
        /// The number of files.
        files: u8,
    },
    /// The disk has room again.
    Room,
    /// Clients send a request.
    Request {
        /// The time until its response ends.
        ms: u64,
    },
    /// The run gets no processor for a while.
    Stall {
        /// How long.
        ms: u64,
    },
}

/// The kinds of orders.
const KINDS: usize = 16;

/// Draws a run.
pub(super) fn draw(seed: u64, orders: usize) -> (SetUp, Vec<Order>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let set_up = set_up(&mut random);
    let swarm = Swarm::draw(&mut random, KINDS, 5..30);
    let list = (0..orders).map(|_| {
        let kind = swarm.kind(&mut random);
        order(kind, &mut random)
    });
    (set_up, list.collect())
}

fn set_up(random: &mut fastrand::Rng) -> SetUp {
    let mut ms = |choices: &[u64]| Duration::from_millis(random.choice(choices).copied().unwrap_or(100));
    SetUp {
        start: ms(&[100, 500, 3_000]),
        read: ms(&[0, 100, 700]),
        end: ms(&[50, 1_000, 40_000]),
        drain: ms(&[1_000, 30_000, 120_000]),
        wait: ms(&[0, 0, 5_000]),
        patience: ms(&[180_000, 360_000]),
    }
}

fn config(random: &mut fastrand::Rng) -> Config {
    let flaws = [Flaw::File, Flaw::Bootstrap, Flaw::Deadly, Flaw::Clusters, Flaw::Listeners, Flaw::Names];
    Config {
        bootstrap: random.u8(0..3),
        route: random.u8(0..3),
        names: random.u8(0..3),
        side: random.u8(0..3),
        flaw: if random.u8(0..3) == 0 { random.choice(flaws).unwrap_or(Flaw::File) } else { Flaw::None },
    }
}

fn order(kind: usize, random: &mut fastrand::Rng) -> Order {
    let children = [Child::Envoy, Child::Successor, Child::Draining, Child::Names, Child::Side];
    let child = random.choice(children).unwrap_or(Child::Envoy);
    let fates = [Fate::NoStart, Fate::Hangs, Fate::DiesEarly, Fate::DiesReady];
    match kind {
        1 | 2 => Order::Change(config(random)),
        3 => Order::ChangeBack,
        4 => Order::Noise { ms: random.u64(100..10_000) },
        5 => Order::Reload,
        // A run ends with it, so it is seldom.
        6 if random.u8(0..8) == 0 => Order::Drain,
        7 if random.u8(0..8) == 0 => Order::StopAtOnce,
        8 => Order::Death(child),
        9 => Order::Freeze(child),
        10 => Order::Next(random.choice(fates).unwrap_or(Fate::NoStart)),
        11 => Order::NoStart,
        12 => Order::Busy { ms: random.choice([500, 5_000, 30_000]).unwrap_or(500) },
        13 if random.bool() => Order::Room,
        13 => Order::FullDisk { files: random.u8(0..8) },
        14 => Order::Request { ms: random.choice([10, 3_000, 60_000]).unwrap_or(10) },
        15 => Order::Stall { ms: random.choice([300, 3_000, 60_000]).unwrap_or(300) },
        _ => Order::Wait { ms: random.choice([50, 300, 1_000, 5_000, 40_000, 600_000]).unwrap_or(50) },
    }
}
