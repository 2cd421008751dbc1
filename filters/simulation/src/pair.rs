//! The modules of both ends, their boards and connections.

use std::collections::BTreeMap;
use std::rc::Rc;

use bundling_streams::{Ground, Remote};
use header_compression_config as headers;
use header_compression_streams::HeaderCompression;
use page_flights as flights;
use shared_board::Memory;

use crate::exchange::{GROUND_BUNDLING, GROUND_HEADERS, REMOTE_BUNDLING, REMOTE_HEADERS, VmKey};
use crate::laws::Broken;
use crate::orders::{End, SetUp};
use crate::vm::{Surroundings, Vm};

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
    boards: BTreeMap<End, Rc<Memory>>,
    pub(crate) vms: BTreeMap<VmKey, Vm>,
    generation: u32,
    pipes: BTreeMap<u8, Pipe>,
    next_pipe: u32,
}

/// The bytes of the names of objects and of empty places among them.
const NAMES_BYTES: usize = 4 << 10;
/// The bytes that a board may hold beside the objects: lists of flights, or lessons and known objects.
const BOARD_BYTES: usize = 40 << 20;

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
        };
        pair.restart(End::Remote)?;
        pair.restart(End::Ground)?;
        Ok(pair)
    }

    /// Starts an end without any memory, and connects.
    pub(crate) fn restart(&mut self, end: End) -> Result<(), String> {
        self.vms.retain(|key, _| key.end() != end);
        self.boards.insert(end, Rc::new(Memory::default()));
        for worker in 0..self.set_up.workers {
            self.connect(worker);
        }
        self.reload(end)
    }

    /// Loads the modules of an end again. Streams of the old ones continue there.
    pub(crate) fn reload(&mut self, end: End) -> Result<(), String> {
        self.generation += 1;
        let board = self.boards.entry(end).or_default().clone();
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

    fn load(&self, place: usize, board: &Rc<Memory>) -> Result<Vm, String> {
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
        }
    }

    /// Drops half of the bases of an end.
    pub(crate) fn forget(&mut self, end: End) {
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

    /// Judges the memory that the boards hold.
    pub(crate) fn judge_memory(&self) -> Result<(), Broken> {
        for (end, board) in &self.boards {
            let (objects, others): (Vec<_>, Vec<_>) =
                board.sizes().into_iter().partition(|(name, _)| name.starts_with("object/"));
            let bytes = |list: &[(String, usize)]| list.iter().map(|(name, bytes)| name.len() + bytes).sum::<usize>();
            let (objects, others) = (bytes(&objects), bytes(&others));
            let store = usize::try_from(self.set_up.store_bytes).unwrap_or(usize::MAX);
            if objects > store.saturating_add(NAMES_BYTES) || others > BOARD_BYTES {
                let what = format!("the board of the {end:?} holds {objects} bytes of objects, {others} of others");
                return Err(Broken::Memory(what));
            }
        }
        Ok(())
    }
}
