//! The world around a run: time, the configuration file, signals, the disk and the processes. Orders happen in it.

use std::collections::VecDeque;
use std::ops::Add;
use std::time::{Duration, Instant};

use super::super::events::Stop;
use super::super::supervisor::TICK;
use super::children::{Sides, SimNames};
use super::disk::SimDisk;
use super::envoys::{Envoys, Phase};
use super::laws::Broken;
use super::orders::{Child, Config, Order, SetUp};

/// The time between two orders.
const GAP: Duration = Duration::from_millis(150);

/// The things that happened in runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) steps: u64,
    pub(super) ms: u64,
    pub(super) applied: u64,
    pub(super) refused: u64,
    pub(super) unwritten: u64,
    pub(super) unconfirmed: u64,
    pub(super) takeovers: u64,
    pub(super) failed_takeovers: u64,
    pub(super) given_up: u64,
    pub(super) restarts: u64,
    pub(super) drains: u64,
    pub(super) interrupted: u64,
}

impl Add for Done {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            steps: self.steps + other.steps,
            ms: self.ms + other.ms,
            applied: self.applied + other.applied,
            refused: self.refused + other.refused,
            unwritten: self.unwritten + other.unwritten,
            unconfirmed: self.unconfirmed + other.unconfirmed,
            takeovers: self.takeovers + other.takeovers,
            failed_takeovers: self.failed_takeovers + other.failed_takeovers,
            given_up: self.given_up + other.given_up,
            restarts: self.restarts + other.restarts,
            drains: self.drains + other.drains,
            interrupted: self.interrupted + other.interrupted,
        }
    }
}

/// The world of one run.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct World {
    pub(super) set_up: SetUp,
    pub(super) now: Instant,
    orders: VecDeque<Order>,
    next_at: Instant,
    /// The content of the configuration file.
    pub(super) file: Config,
    pub(super) files_changed: bool,
    pub(super) reload: bool,
    pub(super) stops: VecDeque<Stop>,
    noise_until: Option<Instant>,
    pub(super) disk: SimDisk,
    pub(super) envoys: Envoys,
    pub(super) names: Option<SimNames>,
    pub(super) sides: Sides,
    /// The next CoreDNS or program beside Envoy cannot be started.
    pub(super) no_start: bool,
    /// The ends of the responses that are under way.
    pub(super) requests: Vec<Instant>,
    /// True once the listeners are closed.
    pub(super) is_closed: bool,
    /// The run gets no processor until then.
    pub(super) stall_until: Option<Instant>,
    pub(super) stalled_until: Option<Instant>,
    /// True once every fault was taken away.
    pub(super) has_healed: bool,
    /// The last order that disturbed the run.
    pub(super) calm_since: Instant,
    /// The first two signals that end the run.
    pub(super) signals: Vec<(Stop, Instant)>,
    pub(super) broken: Option<Broken>,
    pub(super) done: Done,
}

impl World {
    pub(super) fn new(set_up: &SetUp, orders: &[Order]) -> Self {
        let now = Instant::now();
        Self {
            set_up: set_up.clone(),
            now,
            orders: orders.iter().cloned().collect(),
            // The orders begin once the run serves.
            next_at: now + Duration::from_secs(10),
            file: Config::FIRST,
            files_changed: false,
            reload: false,
            stops: VecDeque::new(),
            noise_until: None,
            disk: SimDisk::default(),
            envoys: Envoys::new(set_up),
            names: None,
            sides: Sides::default(),
            no_start: false,
            requests: Vec::new(),
            is_closed: false,
            stall_until: None,
            stalled_until: None,
            has_healed: false,
            calm_since: now,
            signals: Vec::new(),
            broken: None,
            done: Done::default(),
        }
    }

    /// Records the first law that is broken.
    pub(super) fn keep<T>(&mut self, kept: Result<T, Broken>) -> Option<T> {
        kept.map_err(|broken| self.broken.get_or_insert(broken)).ok()
    }

    pub(super) fn require(&mut self, holds: bool, broken: impl FnOnce() -> Broken) {
        if !holds {
            self.broken.get_or_insert_with(broken);
        }
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let step = TICK.min(end - self.now);
            self.now += step;
            // Nothing happens any more in a run that broke a law, but its waits must end.
            if self.broken.is_some() {
                continue;
            }
            self.done.steps += 1;
            self.done.ms += u64::try_from(step.as_millis()).unwrap_or(0);
            self.happen();
        }
    }

    fn happen(&mut self) {
        let now = self.now;
        let renamed = std::mem::take(&mut self.disk.renamed);
        self.envoys.notice(&renamed, now);
        let kept = self.envoys.happen(&self.disk, now);
        self.keep(kept);
        if let Some(names) = &mut self.names {
            names.happen(&self.disk, now);
        }
        self.sides.happen(now);
        self.requests.retain(|end| *end > now);
        self.files_changed |= self.noise_until.is_some_and(|until| now < until);
        while self.next_at <= now
            && let Some(order) = self.orders.pop_front()
        {
            self.next_at = now + GAP;
            self.follow(&order);
        }
    }

    /// Returns true if no order is left.
    pub(super) fn is_out_of_orders(&self) -> bool {
        self.orders.is_empty() && self.next_at <= self.now
    }

    fn follow(&mut self, order: &Order) {
        let now = self.now;
        let in_ms = |ms: &u64| now + Duration::from_millis(*ms);
        if !matches!(order, Order::Wait { .. }) {
            self.calm_since = now;
        }
        match order {
            Order::Wait { ms } => self.next_at = in_ms(ms),
            Order::Change(config) => self.change(*config),
            Order::ChangeBack => self.change(Config::FIRST),
            Order::Noise { ms } => self.noise_until = Some(in_ms(ms)),
            Order::Reload => self.reload = true,
            Order::Drain => self.signal(Stop::Drain),
            Order::StopAtOnce => self.signal(Stop::AtOnce),
            Order::Death(child) => self.death(*child),
            Order::Freeze(child) => self.freeze(*child),
            Order::Next(fate) => self.envoys.fate = Some(*fate),
            Order::NoStart => self.no_start = true,
            Order::Busy { ms } => self.envoys.busy_until = Some(in_ms(ms)),
            Order::FullDisk { files } => self.disk.room = Some(*files),
            Order::Room => self.disk.room = None,
            Order::Request { ms } if !self.is_closed => self.requests.push(in_ms(ms)),
            Order::Request { .. } => {}
            Order::Stall { ms } => self.stall_until = Some(in_ms(ms)),
        }
    }

    fn change(&mut self, config: Config) {
        self.file = config;
        self.files_changed = true;
    }

    pub(super) fn signal(&mut self, stop: Stop) {
        self.stops.push_back(stop);
        self.signals.push((stop, self.now));
    }

    fn death(&mut self, child: Child) {
        let now = self.now;
        match child {
            Child::Envoy => self.kill_envoy(Phase::Serving),
            Child::Successor => self.kill_envoy(Phase::Starting),
            Child::Draining => self.kill_envoy(Phase::Draining),
            Child::Names => {
                if let Some(names) = &mut self.names {
                    names.ends_at = Some(now);
                }
            }
            Child::Side => {
                if let Some(side) = self.sides.all.values_mut().rfind(|side| !side.ended) {
                    side.ends_at = Some(now);
                }
            }
        }
    }

    fn kill_envoy(&mut self, phase: Phase) {
        if let Some(id) = self.envoys.find(phase) {
            self.envoys.end(id, self.now);
        }
        if phase == Phase::Serving {
            self.requests.clear();
        }
    }

    /// An Envoy that serves and freezes would be noticed by nobody: no part of a run looks for it.
    fn freeze(&mut self, child: Child) {
        let envoy = match child {
            Child::Envoy => None,
            Child::Successor => self.envoys.find(Phase::Starting),
            Child::Draining => self.envoys.find(Phase::Draining),
            Child::Names => {
                if let Some(names) = &mut self.names {
                    names.frozen = true;
                }
                None
            }
            Child::Side => {
                if let Some(side) = self.sides.all.values_mut().find(|side| !side.ended) {
                    side.frozen = true;
                }
                None
            }
        };
        if let Some(envoy) = envoy.and_then(|id| self.envoys.all.get_mut(&id)) {
            envoy.frozen = true;
        }
    }

    /// Takes away every fault that stands, so that the run can settle.
    pub(super) fn heal(&mut self) {
        self.disk.room = None;
        self.envoys.fate = None;
        self.envoys.busy_until = None;
        self.no_start = false;
        self.noise_until = None;
        self.has_healed = true;
        self.calm_since = self.now;
    }
}
