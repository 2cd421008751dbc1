//! The set-up and the orders of a run, drawn from a seed.

use swarm::Swarm;

/// The numbers of a run.
#[derive(Debug, Clone)]
pub struct SetUp {
    /// The round-trip time of the link, and how much later a message may come.
    pub rtt_ms: u64,
    pub(crate) jitter_ms: u64,
    /// Bytes a second.
    pub(crate) down: u64,
    pub(crate) up: u64,
    /// Workers of each end.
    pub(crate) workers: u8,
    pub(crate) store_bytes: u64,
    /// Clients whose past an end remembers.
    pub(crate) remembered_clients: u32,
    /// True if the remote has a cache. Then the origins state validators, and the clients have caches of their own.
    pub(crate) caches: bool,
    /// The abilities of either end. An older one lacks some.
    pub(crate) remote: Abilities,
    pub(crate) ground: Abilities,
}

/// The abilities of an end.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "independent abilities")]
pub(crate) struct Abilities {
    pub(crate) headers: bool,
    pub(crate) bundling: bool,
    pub(crate) flights: bool,
    pub(crate) deltas: bool,
    /// A ground tells its resolver which hosts a page names.
    pub(crate) names: bool,
    /// It is of a later version, which says more than this one reads.
    pub(crate) is_later: bool,
}

/// An end of the pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Beside the clients.
    Remote,
    /// On the wired side.
    Ground,
}

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// A client loads a page with its objects.
    Visit {
        /// Its number.
        client: u8,
        /// The number of the site.
        site: u8,
        /// The number of the page.
        page: u8,
        /// True for a page with the visitor's name in it.
        is_personal: bool,
    },
    /// All contents of a site change.
    Change {
        /// The number of the site.
        site: u8,
    },
    /// The link carries nothing for a while.
    Outage {
        /// How long.
        ms: u64,
    },
    /// A worker's connection breaks, with all of its streams.
    Break {
        /// The remote's worker.
        worker: u8,
    },
    /// One request on the link is reset.
    Reset,
    /// A client leaves one of its requests.
    Leave,
    /// An end starts again, without any memory.
    Restart {
        /// Which one.
        end: End,
    },
    /// An end loads its filters again. Streams that are open keep the old ones.
    Reload {
        /// Which one.
        end: End,
    },
    /// An end loses half of its bases, as when other pages took their place.
    Forget {
        /// Which one.
        end: End,
    },
    /// A client opens many pages at once.
    Crowd {
        /// Its number.
        client: u8,
        /// The number of pages.
        pages: u8,
    },
    /// A client sends fields and a name that only an end may send.
    Forge {
        /// Its number.
        client: u8,
    },
    /// The clock of an end steps.
    Step {
        /// Which one.
        end: End,
        /// How far, and in which direction.
        ms: i64,
    },
    /// Another remote of the same ground sends what this one sent, with changed bytes.
    Hostile {
        /// The number of its messages.
        messages: u8,
    },
    /// Nothing, for a while.
    Wait {
        /// How long.
        ms: u64,
    },
}

impl SetUp {
    /// The same without a cache: the runs of seeds from before the cache.
    #[must_use]
    pub fn without_cache(self) -> Self {
        Self { caches: false, ..self }
    }
}

/// The clients of a run.
pub(crate) const CLIENTS: u8 = 5;

/// The kinds of orders.
const KINDS: usize = 14;

/// Draws a run.
pub fn draw(seed: u64, orders: usize) -> (SetUp, Vec<Order>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let set_up = set_up(&mut random);
    let swarm = Swarm::draw(&mut random, KINDS, 10..60);
    let list = (0..orders).map(|_| {
        let kind = swarm.kind(&mut random);
        order(kind, &mut random)
    });
    (set_up, list.collect())
}

fn set_up(random: &mut fastrand::Rng) -> SetUp {
    let rtt_ms = random.choice([20, 80, 600]).unwrap_or(600);
    let mut abilities = || {
        let is_whole = random.u8(0..4) != 0;
        let mut has = || is_whole || random.bool();
        let (headers, bundling, flights, deltas) = (has(), has(), has(), has());
        Abilities { headers, bundling, flights, deltas, names: false, is_later: random.u8(0..4) == 0 }
    };
    let (remote, mut ground) = (abilities(), abilities());
    // Of a source of its own, so that the orders of a seed stay.
    let mut later = fastrand::Rng::with_seed(random.clone().u64(..));
    ground.names = later.bool();
    let caches = later.bool();
    SetUp {
        rtt_ms,
        jitter_ms: random.choice([0, 5, 50]).unwrap_or(0),
        down: random.choice([32_000, 250_000, 2_500_000]).unwrap_or(250_000),
        up: random.choice([16_000, 64_000, 625_000]).unwrap_or(64_000),
        workers: random.u8(1..=2),
        store_bytes: random.choice([20_000, 1 << 20]).unwrap_or(1 << 20),
        remembered_clients: random.choice([2, 512]).unwrap_or(512),
        caches,
        remote,
        ground,
    }
}

fn order(kind: usize, random: &mut fastrand::Rng) -> Order {
    use crate::origin::{PAGES, SITES};
    let end = if random.bool() { End::Remote } else { End::Ground };
    match kind {
        1 => Order::Change { site: random.u8(0..SITES) },
        2 => Order::Outage { ms: random.u64(100..20_000) },
        3 => Order::Break { worker: random.u8(0..2) },
        4 => Order::Reset,
        5 => Order::Leave,
        6 => Order::Restart { end },
        7 => Order::Reload { end },
        8 => Order::Hostile { messages: random.u8(1..8) },
        9 => Order::Wait { ms: random.choice([50, 1_000, 30_000, 4_000_000]).unwrap_or(50) },
        10 => Order::Forget { end },
        11 => Order::Crowd { client: random.u8(0..CLIENTS), pages: random.u8(2..50) },
        12 => Order::Forge { client: random.u8(0..CLIENTS) },
        13 => Order::Step { end, ms: random.choice([-4_000_000, -1_000, -50, 50, 1_000, 4_000_000]).unwrap_or(50) },
        _ => Order::Visit {
            client: random.u8(0..CLIENTS),
            site: random.u8(0..SITES),
            page: random.u8(0..PAGES),
            is_personal: random.u8(0..4) == 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_run_again() {
        assert_eq!(draw(3, 40).1, draw(3, 40).1);
        assert_ne!(draw(3, 40).1, draw(4, 40).1);
    }
}
