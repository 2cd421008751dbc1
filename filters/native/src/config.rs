//! One configuration of a filter, as Envoy loads it: the same for all workers, each with a filter of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use filter_host::headers::Pairs;

use crate::abi;
use crate::board::SharedBoard;
use crate::filters::{self, Kind};
use crate::host::{Common, EnvoyHost, Place};
use crate::panics;
use crate::timer::Ticks;
use crate::ways::Ways;
use crate::worker::Worker;

/// A configuration.
#[derive(Debug)]
pub(crate) struct Config {
    common: Arc<Common>,
    kind: Kind,
    name: String,
    json: Vec<u8>,
    /// Envoy's number of the counter of panics.
    panics: Option<usize>,
    /// The worker in each place that serves new streams.
    workers: Vec<Mutex<Option<Arc<Worker>>>>,
    /// Every worker by its number, for ticks and for responses to requests.
    known: Mutex<(u64, HashMap<u64, Weak<Worker>>)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Config {
    /// Loads a configuration, on the main thread. `name` is that of the filter, and behind an `@` that of the board on
    /// which its workers share values.
    ///
    /// # Errors
    /// The reason for a refusal, in one line.
    pub(crate) fn load(config: abi::Config, name: &str, json: &[u8]) -> Result<Box<Self>, String> {
        let (filter, board) = name.split_once('@').unwrap_or((name, name));
        let kind = filters::named(filter).ok_or_else(|| format!("longhaul: this module has no filter {filter:?}"))?;
        Self::of_kind(config, kind, board, json)
    }

    /// Loads the configuration of a filter, whose workers share values on `board`.
    ///
    /// # Errors
    /// The reason for a refusal, in one line.
    pub(crate) fn of_kind(config: abi::Config, kind: Kind, board: &str, json: &[u8]) -> Result<Box<Self>, String> {
        let places = abi::workers() + 1;
        let common = Arc::new(Common {
            config,
            board: SharedBoard::named(board),
            counters: Mutex::default(),
            calls: Mutex::default(),
            ticks: Ticks::new(config.bell()),
            ways: Ways::of_this_process(),
        });
        let this = Box::new(Self {
            panics: common.config.define_counter(&panics::counter(kind.counts_for)).ok(),
            common,
            kind,
            name: kind.counts_for.to_owned(),
            json: json.to_vec(),
            workers: std::iter::repeat_with(Mutex::default).take(places).collect(),
            known: Mutex::default(),
        });
        // The first worker's filter tells whether the configuration is right, and defines the counters.
        let first = this.start(0, Place::Configuring)?;
        if let Some(place) = this.workers.first() {
            *lock(place) = Some(first);
        }
        Ok(this)
    }

    fn start(&self, thread: usize, place: Place) -> Result<Arc<Worker>, String> {
        let number = {
            let mut known = lock(&self.known);
            known.0 += 1;
            known.1.retain(|_, worker| worker.strong_count() > 0);
            known.0
        };
        let host = EnvoyHost::new(Arc::clone(&self.common), number, thread);
        let worker = Arc::new(Worker::new(host, self.kind, &self.name, &self.json, place)?);
        lock(&self.known).1.insert(number, Arc::downgrade(&worker));
        Ok(worker)
    }

    /// Returns the worker that serves a new stream of the thread `index`. None: its filter does not start.
    pub(crate) fn worker(&self, index: usize) -> Option<Arc<Worker>> {
        // The last place is that of every thread that is no worker.
        let place = self.workers.get(index).or(self.workers.last())?;
        let mut place = lock(place);
        if place.as_ref().is_none_or(|worker| worker.has_panicked()) {
            match self.start(index, Place::Nowhere) {
                Ok(worker) => *place = Some(worker),
                Err(reason) => {
                    abi::log(4, &reason);
                    return None;
                }
            }
        }
        place.clone()
    }

    /// Counts a panic.
    pub(crate) fn count_panic(&self) {
        if let Some(id) = self.panics {
            let _ = self.common.config.add_to_counter(id, 1);
        }
    }

    /// Handles a tick of the worker `number`, on the main thread.
    pub(crate) fn tick(&self, number: u64) {
        self.common.ticks.handled(number);
        self.at_worker(number, Worker::tick);
    }

    /// Handles the end of a request that a filter sent from the main thread.
    pub(crate) fn ended(&self, call: u64, answer: Option<(Pairs, Vec<u8>)>) {
        let worker = lock(&self.common.calls).remove(&call);
        if let Some(number) = worker {
            self.at_worker(number, |worker| worker.ended(call, answer));
        }
    }

    fn at_worker(&self, number: u64, act: impl FnOnce(&Worker) -> bool) {
        let worker = lock(&self.known).1.get(&number).and_then(Weak::upgrade);
        if worker.is_some_and(|worker| !act(&worker)) {
            self.count_panic();
        }
    }
}

impl Drop for Config {
    fn drop(&mut self) {
        self.common.ticks.end();
    }
}
