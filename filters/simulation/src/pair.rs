//! The modules of both ends, their boards and connections.

use std::collections::BTreeMap;
use std::rc::Rc;

use bundling_streams::{Ground, Remote};
use header_compression_config as headers;
use header_compression_streams::HeaderCompression;
use page_flights as flights;

use crate::board::{EndBoard, Most};
use crate::cache::Cache;
use crate::laws::Broken;
use crate::orders::{End, SetUp};
use crate::place::{GROUND_BUNDLING, GROUND_HEADERS, REMOTE_BUNDLING, REMOTE_HEADERS, VmKey};
use crate::vm::{Surroundings, Vm};

/// The cluster of the ground's resolver.
pub(crate) const NAMES: &str = "names";

/// A connection of the pipe.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pipe {
    pub(crate) number: u32,
    pub(crate) ground_worker: u8,
}

/// Both ends.
pub(crate) struct Pair {
    set_up: SetUp,
    around: Surroundings,
    boards: BTreeMap<End, Rc<EndBoard>>,
    pub(crate) vms: BTreeMap<VmKey, Vm>,
    generation: u32,
    pipes: BTreeMap<u8, Pipe>,
    next_pipe: u32,
    pub(crate) cache: Cache,
}

impl Pair {
    pub(crate) fn new(set_up: &SetUp, around: &Surroundings) -> Result<Self, String> {
        let mut pair = Self {
            set_up: set_up.clone(),
            around: around.clone(),
            boards: BTreeMap::new(),
            vms: BTreeMap::new(),
            generation: 0,
            pipes: BTreeMap::new(),
            next_pipe: 1,
            cache: Cache::new(),
        };
        pair.restart(End::Remote)?;
        pair.restart(End::Ground)?;
        Ok(pair)
    }

    /// Starts an end without any memory, and connects.
    pub(crate) fn restart(&mut self, end: End) -> Result<(), String> {
        self.vms.retain(|key, _| key.end() != end);
        self.boards.insert(end, Rc::new(EndBoard::new(end, self.set_up.store_bytes)));
        for worker in 0..self.set_up.workers {
            self.connect(worker);
        }
        self.reload(end)
    }

    /// Loads the modules of an end again. Streams of the old ones continue there.
    pub(crate) fn reload(&mut self, end: End) -> Result<(), String> {
        self.generation += 1;
        let store_bytes = self.set_up.store_bytes;
        let board = self.boards.entry(end).or_insert_with(|| Rc::new(EndBoard::new(end, store_bytes))).clone();
        let (able, places) = match end {
            End::Remote => (self.set_up.remote, [REMOTE_BUNDLING, REMOTE_HEADERS]),
            End::Ground => (self.set_up.ground, [GROUND_BUNDLING, GROUND_HEADERS]),
        };
        for worker in 0..self.set_up.workers {
            for (place, has) in places.into_iter().zip([able.bundling, able.headers]) {
                if has {
                    let vm = self.load(place, &board)?;
                    self.vms.insert(VmKey { place, worker, generation: self.generation }, vm);
                }
            }
        }
        self.sweep();
        Ok(())
    }

    fn load(&self, place: usize, board: &Rc<EndBoard>) -> Result<Vm, String> {
        let to_json = |value: serde_json::Result<Vec<u8>>| value.map_err(|error| error.to_string());
        match place {
            REMOTE_HEADERS | GROUND_HEADERS => {
                let role = if place == REMOTE_HEADERS { headers::Role::Remote } else { headers::Role::Ground };
                let clients = self.set_up.remembered_clients;
                let config = headers::Config { role, clients, client: headers::ClientKey::default() };
                Vm::load::<HeaderCompression>(&to_json(serde_json::to_vec(&config))?, &self.around, board)
            }
            REMOTE_BUNDLING => {
                let config = to_json(serde_json::to_vec(&self.bundling(flights::Role::Remote)))?;
                Vm::load::<Remote>(&config, &self.around, board)
            }
            _ => {
                let config = to_json(serde_json::to_vec(&self.bundling(flights::Role::Ground)))?;
                Vm::load::<Ground>(&config, &self.around, board)
            }
        }
    }

    fn bundling(&self, role: flights::Role) -> flights::Config {
        let able = if role == flights::Role::Remote { self.set_up.remote } else { self.set_up.ground };
        flights::Config {
            role,
            cluster: "pair".to_owned(),
            rtt_ms: self.set_up.rtt_ms,
            down: self.set_up.down,
            up: self.set_up.up,
            store_bytes: self.set_up.store_bytes,
            buffer_bytes: 750_000,
            flights: able.flights,
            deltas: able.deltas,
            caches: self.set_up.caches && role == flights::Role::Remote,
            // The name of a cache is a file beside it, so it stays.
            cache_name: self.set_up.caches.then(|| "0123456789abcdef".to_owned()),
            names: able.names.then(|| NAMES.to_owned()),
        }
    }

    /// The time of day at the remote.
    pub(crate) fn remote_ms(&self) -> u64 {
        let now_ms = self.around.now_ms.get();
        self.boards.get(&End::Remote).map_or(now_ms, |board| board.clock_ms(now_ms))
    }

    /// Steps the clock of an end.
    pub(crate) fn step(&mut self, end: End, ms: i64) {
        if let Some(board) = self.boards.get(&end) {
            board.step(ms);
        }
    }

    /// Drops half of the bases of an end, and half of what is in its cache.
    pub(crate) fn forget(&mut self, end: End) {
        if end == End::Remote {
            self.cache.forget();
        }
        let mut is_kept = false;
        if let Some(board) = self.boards.get(&end) {
            board.retain(|name| {
                is_kept = !is_kept;
                is_kept || !name.starts_with("base/")
            });
        }
    }

    /// Connects a worker of the remote again.
    pub(crate) fn connect(&mut self, worker: u8) -> Pipe {
        let ground_worker = self.around.random.borrow_mut().u8(0..self.set_up.workers);
        let pipe = Pipe { number: self.next_pipe, ground_worker };
        self.next_pipe += 1;
        self.pipes.insert(worker, pipe);
        pipe
    }

    /// The connection of a worker of the remote.
    pub(crate) fn pipe(&mut self, worker: u8) -> Pipe {
        self.pipes.get(&worker).copied().unwrap_or_else(|| self.connect(worker))
    }

    /// The module that new streams of a place get. None if the end lacks it.
    pub(crate) fn current(&self, place: usize, worker: u8) -> Option<VmKey> {
        let of = |generation| VmKey { place, worker, generation };
        self.vms.range(of(0)..=of(u32::MAX)).next_back().map(|(key, _)| *key)
    }

    /// Drops replaced modules without streams.
    pub(crate) fn sweep(&mut self) {
        let current: Vec<VmKey> =
            self.vms.keys().copied().filter(|key| self.current(key.place, key.worker) == Some(*key)).collect();
        self.vms.retain(|key, vm| current.contains(key) || vm.open_streams() > 0);
    }

    /// Judges the memory that the boards hold, and adds it to the most that was seen.
    pub(crate) fn judge_memory(&self, most: &mut Most) -> Result<(), Broken> {
        for board in self.boards.values() {
            let held = board.judge()?;
            *most = most.max(held);
        }
        Ok(())
    }
}
