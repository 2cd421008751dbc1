//! The ticks of filters. Envoy gives HTTP filters no timers, so a thread of the module waits, and wakes Envoy's main thread.
//!
//! The thread touches neither filters nor streams. It starts with the first tick that a filter wants.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::abi::MainBell;

/// The ticks of one configuration.
#[derive(Debug)]
pub(crate) struct Ticks {
    config: u64,
}

/// A worker's ticks.
#[derive(Debug)]
struct Tick {
    period: Duration,
    due: Instant,
    /// True until the main thread has handled the last one. A slow main thread gets no further ones until then.
    waits: bool,
}

#[derive(Debug, Default)]
struct Schedule {
    next_config: u64,
    has_thread: bool,
    bells: HashMap<u64, MainBell>,
    /// By configuration and worker.
    ticks: HashMap<(u64, u64), Tick>,
}

#[derive(Debug, Default)]
struct Clockwork {
    schedule: Mutex<Schedule>,
    changed: Condvar,
}

fn clockwork() -> &'static Clockwork {
    static CLOCKWORK: OnceLock<Clockwork> = OnceLock::new();
    CLOCKWORK.get_or_init(Clockwork::default)
}

impl Clockwork {
    fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut schedule = self.lock();
        loop {
            let next = schedule.ring(Instant::now());
            schedule = match next {
                None => self.changed.wait(schedule).unwrap_or_else(PoisonError::into_inner),
                Some(wait) => self.changed.wait_timeout(schedule, wait).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }
}

impl Schedule {
    /// Rings for the ticks that are due. Returns the time until the next one.
    fn ring(&mut self, now: Instant) -> Option<Duration> {
        for ((config, worker), tick) in &mut self.ticks {
            if tick.due > now || tick.waits {
                continue;
            }
            if let Some(bell) = self.bells.get(config) {
                bell.ring(*worker);
                tick.waits = true;
            }
            tick.due = now + tick.period;
        }
        let waiting = self.ticks.values().filter(|tick| !tick.waits);
        waiting.map(|tick| tick.due.saturating_duration_since(now)).min()
    }
}

impl Ticks {
    /// Starts the ticks of a configuration, without any. Only the main thread may call it.
    pub(crate) fn new(bell: MainBell) -> Self {
        let mut schedule = clockwork().lock();
        schedule.next_config += 1;
        let config = schedule.next_config;
        schedule.bells.insert(config, bell);
        Self { config }
    }

    /// Ticks for `worker` every `period` from now on. Zero ends that.
    pub(crate) fn set(&self, worker: u64, period: Duration) {
        let clockwork = clockwork();
        let mut schedule = clockwork.lock();
        let key = (self.config, worker);
        if period.is_zero() {
            schedule.ticks.remove(&key);
            return;
        }
        let waits = schedule.ticks.get(&key).is_some_and(|tick| tick.waits);
        schedule.ticks.insert(key, Tick { period, due: Instant::now() + period, waits });
        if !schedule.has_thread {
            let thread = thread::Builder::new().name("longhaul-ticks".into());
            // Without a thread, filters wait for a tick that never comes, and their own deadlines end the wait.
            schedule.has_thread = thread.spawn(|| clockwork.run()).is_ok();
        }
        clockwork.changed.notify_one();
    }

    /// The main thread begins to handle a tick of `worker`.
    pub(crate) fn handled(&self, worker: u64) {
        let clockwork = clockwork();
        if let Some(tick) = clockwork.lock().ticks.get_mut(&(self.config, worker)) {
            tick.waits = false;
        }
        clockwork.changed.notify_one();
    }
}

impl Ticks {
    /// Ends the ticks, under the lock: no bell rings for a configuration that Envoy destroys.
    pub(crate) fn end(&self) {
        let mut schedule = clockwork().lock();
        schedule.ticks.retain(|(config, _), _| *config != self.config);
        schedule.bells.remove(&self.config);
    }
}
