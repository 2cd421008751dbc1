//! The order of one link for all workers, and the thread that calls the streams whose turn it is.
//!
//! The thread touches no stream. It rings a bell, and the stream's worker goes on with it.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use link_share::{Config, Link, LinkConfig, Renewals, StreamId, Subscriber, Verdict};

use super::unsent::Unsent;
use crate::abi::StreamBell;

/// The wait between two looks where there is nothing to do. A new piece ends it.
const IDLE: Duration = Duration::from_mins(1);

/// The order of one link.
#[derive(Debug)]
pub(crate) struct Queue {
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    link: Link,
    /// The configuration in force. A stream of the pipe may be older than its client, and than the client's weight.
    config: LinkConfig,
    /// The bells of streams that have waited.
    bells: HashMap<StreamId, StreamBell>,
    /// The connections that the streams cross.
    renewals: Renewals,
}

/// A stream's place in the order. It leaves the order at the end.
#[derive(Debug)]
pub(crate) struct Place {
    queue: Arc<Queue>,
    id: StreamId,
}

/// The links of this process.
#[derive(Debug, Default)]
struct Queues {
    known: Mutex<Known>,
    /// True if a stream waits that the thread has not seen.
    changed: Mutex<bool>,
    ring: Condvar,
    /// True once the thread runs.
    thread: OnceLock<bool>,
}

#[derive(Debug, Default)]
struct Known {
    /// Those that have had a stream, by the name of the other end.
    by_name: HashMap<String, Arc<Queue>>,
    /// The last configuration. Until a worker has it, new streams come with the one before.
    config: Option<Config>,
}

fn queues() -> &'static Queues {
    static QUEUES: OnceLock<Queues> = OnceLock::new();
    QUEUES.get_or_init(Queues::default)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the time since the first call.
fn now() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

impl Queue {
    /// Returns the order of the link to the other end `name`. A new one has the rate and weights of the last configuration, or of
    /// `config` if that does not have the link.
    pub(crate) fn of(name: &str, config: &LinkConfig) -> Arc<Self> {
        // Without a thread, each piece passes at once: see `Place::offer`.
        queues().start();
        let mut known = lock(&queues().known);
        if let Some(queue) = known.by_name.get(name) {
            return Arc::clone(queue);
        }
        // A pattern covers any number of ends. Those without a stream begin again.
        known.by_name.retain(|_, queue| Arc::strong_count(queue) > 1);
        let last = known.config.as_ref().and_then(|config| config.link(name));
        let config = last.map_or(config, |(_, link)| link);
        let link = Link::new(config.bytes_per_second, now());
        let inside = Inside { link, config: config.clone(), bells: HashMap::new(), renewals: Renewals::default() };
        let queue = Arc::new(Self { inside: Mutex::new(inside) });
        known.by_name.insert(name.to_owned(), Arc::clone(&queue));
        queue
    }

    /// Gives all links that are in use the rates and weights of a new configuration.
    pub(crate) fn configure(config: &Config) {
        let mut known = lock(&queues().known);
        for (name, queue) in &known.by_name {
            if let Some((_, link)) = config.link(name) {
                queue.set(link);
            }
        }
        known.config = Some(config.clone());
        drop(known);
        // Streams may wait for less long now.
        queues().wake();
    }

    fn set(&self, config: &LinkConfig) {
        let mut inside = lock(&self.inside);
        inside.link.set_rate(config.bytes_per_second, now());
        inside.link.weigh(|client| config.tenths(client));
        inside.config.clone_from(config);
    }

    /// Adds a stream of a client. `connection` is Envoy's number of the one that it crosses, if its congestion control may start again.
    pub(crate) fn open(self: &Arc<Self>, client: Subscriber, connection: Option<u64>) -> Place {
        let mut inside = lock(&self.inside);
        let tenths = inside.config.tenths(client);
        let id = inside.link.open(client, tenths, now());
        if let Some(connection) = connection {
            inside.renewals.join(id, connection, now());
        }
        drop(inside);
        Place { queue: Arc::clone(self), id }
    }

    /// Returns true if a stream waits for a turn.
    fn has_waiting(&self) -> bool {
        lock(&self.inside).link.until_turn().is_some()
    }

    /// Rings for the streams whose turn it is, while a connection has `unsent` bytes at most. Returns the time until the next one.
    fn ring(&self, unsent: u64) -> Option<Duration> {
        let mut inside = lock(&self.inside);
        inside.link.set_unsent(unsent);
        while let Some(id) = inside.link.turn(now()) {
            if let Some(bell) = inside.bells.get(&id) {
                bell.ring();
            }
        }
        inside.link.until_turn()
    }
}

impl Place {
    /// Counts a piece of `bytes` that may not wait.
    pub(crate) fn pass(&self, bytes: usize) {
        lock(&self.queue.inside).link.pass(self.id, u64::try_from(bytes).unwrap_or(u64::MAX), now());
    }

    /// Returns the bytes that the stream may hold while it waits. None: what its buffer takes.
    pub(crate) fn most_held(&self) -> Option<u64> {
        lock(&self.queue.inside).link.most_held(self.id)
    }

    /// The connection of the stream takes no more bytes.
    pub(crate) fn hold_up(&self) {
        let mut inside = lock(&self.queue.inside);
        inside.link.hold_up(self.id);
        inside.renewals.hold_up(self.id, now());
    }

    /// The connection of the stream takes bytes again.
    pub(crate) fn release(&self) {
        let mut inside = lock(&self.queue.inside);
        inside.link.release(self.id);
        inside.renewals.release(self.id, now());
        drop(inside);
        queues().wake();
    }

    /// Takes note of a piece, and returns true if the congestion control of its connection is to start again.
    pub(crate) fn is_renewal_due(&self) -> bool {
        lock(&self.queue.inside).renewals.is_due(self.id, now())
    }

    /// Offers a piece of `bytes`. `bell` makes the bell of the stream, if it has none yet.
    pub(crate) fn offer(&self, bytes: usize, bell: impl FnOnce() -> StreamBell) -> Verdict {
        if !queues().has_thread() {
            return Verdict::Pass;
        }
        let mut inside = lock(&self.queue.inside);
        let verdict = inside.link.offer(self.id, u64::try_from(bytes).unwrap_or(u64::MAX), now());
        if verdict == Verdict::Wait {
            inside.bells.entry(self.id).or_insert_with(bell);
            drop(inside);
            queues().wake();
        }
        verdict
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inside = lock(&self.queue.inside);
        inside.link.close(self.id, now());
        inside.bells.remove(&self.id);
        inside.renewals.leave(self.id, now());
    }
}

impl Queues {
    fn start(&'static self) {
        self.thread.get_or_init(|| thread::Builder::new().name("longhaul-share".into()).spawn(|| self.run()).is_ok());
    }

    fn has_thread(&self) -> bool {
        self.thread.get().copied().unwrap_or_default()
    }

    fn wake(&self) {
        *lock(&self.changed) = true;
        self.ring.notify_one();
    }

    fn run(&self) {
        let mut unsent = Unsent::default();
        loop {
            let known = lock(&self.known);
            let all: Vec<Arc<Queue>> = known.by_name.values().cloned().collect();
            let ports = known.config.as_ref().map(|config| config.ports.clone()).unwrap_or_default();
            drop(known);
            let is_read = !ports.is_empty() && all.iter().any(|queue| queue.has_waiting());
            let unsent = if is_read { unsent.to(&ports, now()) } else { 0 };
            let wait = all.iter().filter_map(|queue| queue.ring(unsent)).min().unwrap_or(IDLE);
            let changed = lock(&self.changed);
            let unseen = |changed: &mut bool| !*changed;
            let outcome = self.ring.wait_timeout_while(changed, wait, unseen);
            *outcome.unwrap_or_else(PoisonError::into_inner).0 = false;
        }
    }
}
