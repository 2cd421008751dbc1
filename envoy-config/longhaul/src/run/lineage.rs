//! Decides which Envoy serves, which one takes over and which ones drain, without touching a process.
//!
//! Envoy's hot restart has rules. A caller that breaks them loses the Envoy that serves:
//!
//! - A process that starts while the one before it is still starting exits at once, with status 1.
//! - A process that starts makes its parent end its own parent, whose connections then break before their drain time.
//! - A process that dies before it is ready leaves its parent serving, but without an admin interface.
//! - A process whose parent dies before it is ready never serves: it waits for the parent and then aborts.
//!
//! So one takeover happens at a time, and the next one waits until the previous parent has ended. Only a process that
//! is ready replaces the one that serves.

use std::time::{Duration, Instant};

use super::restarts::BackOff;

/// The number of takeovers that are tried for one change. The next change tries again.
const MOST_ATTEMPTS: u32 = 3;
/// The wait before a takeover is tried again.
const RETRY_WAIT: Duration = Duration::from_secs(2);
/// The time after the drain time at which a parent is asked to end, if its child has not ended it. After that time again, it
/// is killed: while a parent is left, nobody takes over.
const END_MARGIN: Duration = Duration::from_secs(5);

/// Names one process of the lineage. A name is never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id(u64);

/// The next action on the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessStep {
    /// Start the first process of a new line, which takes over no sockets.
    Begin(Id),
    /// Start a process that takes over the sockets of the one that serves.
    Succeed {
        /// The new process.
        id: Id,
        /// Its generation.
        epoch: u32,
    },
    /// Ask a process to end.
    Terminate(Id),
    /// End a process at once, and report its end.
    Kill(Id),
}

/// The meaning of a process's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// None: its successor serves.
    Expected,
    /// The present process keeps running. The takeover is tried again after this wait, or not again if there is none.
    Successor(Option<Duration>),
    /// No process serves until the next one starts, after this wait.
    Serving(Duration),
}

#[derive(Debug, Clone, Copy)]
struct Member {
    id: Id,
    epoch: u32,
    started: Instant,
    ready: bool,
}

#[derive(Debug, Clone, Copy)]
struct Draining {
    id: Id,
    /// The end of its time to drain or, once it was asked to end, of its time for that.
    until: Instant,
    asked: bool,
}

/// The state of the processes that decisions need.
#[derive(Debug)]
pub(super) struct Lineage {
    /// The process that serves, or the first of its line while it starts.
    present: Option<Member>,
    /// The process that takes over and is not ready yet.
    successor: Option<Member>,
    /// The processes that have handed over their sockets and finish their connections.
    draining: Vec<Draining>,
    /// True if a change waits for a process of its own.
    wanted: bool,
    /// True while no takeover may begin.
    held: bool,
    /// The number of failed takeovers for that change.
    attempts: u32,
    /// The earliest time of the next takeover.
    not_before: Option<Instant>,
    /// The time at which the next line begins. Set only without a present process.
    begin_at: Option<Instant>,
    /// The back-off of new lines.
    back_off: BackOff,
    /// True if the last process that was to serve died before it was ready.
    failed_to_start: bool,
    last: u64,
}

impl Lineage {
    pub(super) fn new() -> Self {
        Self {
            present: None,
            successor: None,
            draining: Vec::new(),
            wanted: false,
            held: false,
            attempts: 0,
            not_before: None,
            begin_at: None,
            back_off: BackOff::new(),
            failed_to_start: false,
            last: 0,
        }
    }

    /// Starts the first process at the next step.
    pub(super) fn begin(&mut self, now: Instant) {
        self.begin_at = Some(now);
    }

    /// Requests another process for a change. A later step starts it, as soon as that costs no connection.
    pub(super) fn want(&mut self) {
        self.wanted = true;
        self.attempts = 0;
        self.not_before = None;
    }

    /// Returns the process whose admin interface responds, if any does.
    pub(super) fn present(&self) -> Option<Id> {
        self.present.map(|member| member.id)
    }

    /// Returns the process that takes over and is not known to be ready.
    pub(super) fn successor(&self) -> Option<Id> {
        self.successor.map(|member| member.id)
    }

    /// Returns true if a process takes over and is not ready yet.
    pub(super) fn is_taking_over(&self) -> bool {
        self.successor.is_some()
    }

    /// Begins no takeover while `held`: the files on the disk are not those in force.
    pub(super) fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// Returns true if a change waits for a takeover that failed too often.
    pub(super) fn has_given_up(&self) -> bool {
        self.attempts >= MOST_ATTEMPTS
    }

    /// Returns true while a change must wait. A third process would end the two of a takeover. While the successor of a dead
    /// process starts, nobody can refuse a file, and it would start without its listeners. One that cannot start may need
    /// the change.
    pub(super) fn defers_changes(&self) -> bool {
        self.successor.is_some() || !(self.present.is_some_and(|member| member.ready) || self.failed_to_start)
    }

    /// Returns true if a takeover is under way or an earlier process still drains.
    pub(super) fn is_being_exchanged(&self) -> bool {
        self.successor.is_some() || !self.draining.is_empty()
    }

    /// Returns the processes that are not known to be ready, with their generations.
    pub(super) fn unready(&self) -> Vec<(Id, u32)> {
        let members = self.present.iter().chain(&self.successor);
        members.filter(|member| !member.ready).map(|member| (member.id, member.epoch)).collect()
    }

    /// Records that `id` is ready. The process that it replaces has `drain` to finish.
    pub(super) fn ready(&mut self, id: Id, now: Instant, drain: Duration) {
        if let Some(new) = self.successor.take_if(|member| member.id == id) {
            let until = now + drain + END_MARGIN;
            self.draining.extend(self.present.map(|old| Draining { id: old.id, until, asked: false }));
            self.present = Some(new);
        }
        if let Some(present) = self.present.as_mut().filter(|member| member.id == id) {
            present.ready = true;
            self.failed_to_start = false;
        }
    }

    /// Records that `id` has ended or could not be started. If it took over and died before the caller noticed, call
    /// [`Self::ready`] first: its parent does not serve any more.
    pub(super) fn ended(&mut self, id: Id, now: Instant) -> Loss {
        if self.successor.take_if(|member| member.id == id).is_some() {
            return self.takeover_failed(now);
        }
        if let Some(dead) = self.present.take_if(|member| member.id == id) {
            self.failed_to_start = !dead.ready;
            let wait = self.back_off.after(now.saturating_duration_since(dead.started));
            self.begin_at = Some(now + wait);
            return Loss::Serving(wait);
        }
        self.draining.retain(|old| old.id != id);
        Loss::Expected
    }

    /// Returns the next step. Call it until there is none. `patience` is the time in which a process must become ready. While
    /// one takes over, its parent serves, so only later changes wait. While the first of a line starts, nobody serves.
    pub(super) fn next(&mut self, now: Instant, patience: Duration) -> Option<ProcessStep> {
        let orphaned = self.present.is_none();
        let late = |member: &&Member| now.saturating_duration_since(member.started) >= patience;
        let hopeless_successor = self.successor.as_ref().filter(|member| orphaned || late(member));
        let hopeless_first = || self.present.as_ref().filter(|member| !member.ready && late(member));
        if let Some(hopeless) = hopeless_successor.or_else(hopeless_first) {
            return Some(ProcessStep::Kill(hopeless.id));
        }
        if let Some(old) = self.draining.iter_mut().find(|old| old.until <= now) {
            if old.asked {
                return Some(ProcessStep::Kill(old.id));
            }
            (old.until, old.asked) = (now + END_MARGIN, true);
            return Some(ProcessStep::Terminate(old.id));
        }
        if self.present.is_none() {
            self.begin_at.take_if(|at| *at <= now)?;
            return Some(ProcessStep::Begin(self.first(now)));
        }
        if !self.wanted || self.held || self.not_before.is_some_and(|at| at > now) {
            return None;
        }
        let parent = self.present.filter(|member| member.ready)?;
        if self.is_being_exchanged() {
            return None;
        }
        let new = self.member(parent.epoch + 1, now);
        self.successor = Some(new);
        self.wanted = false;
        Some(ProcessStep::Succeed { id: new.id, epoch: new.epoch })
    }

    fn takeover_failed(&mut self, now: Instant) -> Loss {
        if self.present.is_none() {
            return Loss::Expected;
        }
        if self.wanted {
            // A newer change came meanwhile.
            return Loss::Successor(Some(Duration::ZERO));
        }
        self.attempts += 1;
        if self.attempts >= MOST_ATTEMPTS {
            return Loss::Successor(None);
        }
        self.wanted = true;
        self.not_before = Some(now + RETRY_WAIT);
        Loss::Successor(Some(RETRY_WAIT))
    }

    fn first(&mut self, now: Instant) -> Id {
        let new = self.member(0, now);
        self.present = Some(new);
        // The first process reads everything that changed.
        self.wanted = false;
        self.attempts = 0;
        new.id
    }

    fn member(&mut self, epoch: u32, started: Instant) -> Member {
        self.last += 1;
        Member { id: Id(self.last), epoch, started, ready: false }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    use super::*;

    const DRAIN: Duration = Duration::from_mins(1);
    const READY_PATIENCE: Duration = Duration::from_mins(3);
    const TICK: Duration = Duration::from_millis(100);

    /// The events of a run, in any order.
    #[derive(Debug, Clone, Copy)]
    enum Act {
        Change,
        /// The starting process becomes ready, if there is one.
        Ready,
        /// One of the processes dies by itself.
        Death(usize),
        /// The next process cannot be started.
        NoStart,
        /// The supervisor checks the processes.
        Look,
        Time(u64),
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            3 => Just(Act::Change),
            4 => Just(Act::Ready),
            2 => (0_usize..4).prop_map(Act::Death),
            1 => Just(Act::NoStart),
            6 => Just(Act::Look),
            3 => (1_u64..90_000).prop_map(Act::Time),
        ]
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Phase {
        Starting,
        Serving,
        Draining,
    }

    #[derive(Debug, Clone, Copy)]
    struct Process {
        phase: Phase,
        parent: Option<Id>,
        config: u32,
        /// True if its parent has died. It then never becomes ready.
        orphan: bool,
        drains_until: Option<Instant>,
    }

    /// Envoy's rules, as observed on the pinned version, and a supervisor that follows the lineage.
    struct World {
        lineage: Lineage,
        now: Instant,
        processes: BTreeMap<Id, Process>,
        /// Processes that ended unseen by the supervisor, and true for each that had taken over.
        dead: Vec<(Id, bool)>,
        config: u32,
        no_start: bool,
        /// True if the only serving process died by itself and no other serves yet.
        excused: bool,
        serving_min: usize,
    }

    impl World {
        fn started() -> Self {
            let mut world = Self {
                lineage: Lineage::new(),
                now: Instant::now(),
                processes: BTreeMap::new(),
                dead: Vec::new(),
                config: 0,
                no_start: false,
                excused: true,
                serving_min: usize::MAX,
            };
            world.lineage.begin(world.now);
            world.look();
            world.become_ready();
            world.look();
            world
        }

        fn serving(&self) -> usize {
            self.processes.values().filter(|process| process.phase == Phase::Serving).count()
        }

        fn count(&mut self) {
            if self.serving() > 0 {
                self.excused = false;
            }
            if !self.excused {
                self.serving_min = self.serving_min.min(self.serving());
            }
        }

        fn act(&mut self, act: Act) {
            match act {
                Act::Change => {
                    self.config += 1;
                    self.lineage.want();
                }
                Act::Ready => self.become_ready(),
                Act::Death(which) => {
                    if let Some(id) = self.processes.keys().nth(which).copied() {
                        let last = self.serving() == 1;
                        let served = self.processes.get(&id).is_some_and(|process| process.phase == Phase::Serving);
                        self.excused |= last && served;
                        self.end(id);
                        self.dead.push((id, served));
                    }
                }
                Act::NoStart => self.no_start = true,
                Act::Look => self.look(),
                Act::Time(ms) => self.now += Duration::from_millis(ms),
            }
            self.count();
        }

        fn end(&mut self, id: Id) {
            self.processes.remove(&id);
            for child in self.processes.values_mut() {
                child.orphan |= child.parent == Some(id) && child.phase == Phase::Starting;
            }
        }

        fn become_ready(&mut self) {
            let now = self.now;
            let starting =
                self.processes.iter_mut().find(|(_, process)| process.phase == Phase::Starting && !process.orphan);
            let Some((_, process)) = starting else { return };
            process.phase = Phase::Serving;
            let parent = process.parent.take();
            if let Some(parent) = parent.and_then(|parent| self.processes.get_mut(&parent)) {
                parent.phase = Phase::Draining;
                parent.drains_until = Some(now + DRAIN);
            }
            self.count();
        }

        /// Runs one check of the supervisor. It collects deaths before it queries readiness, and reports them after it.
        fn look(&mut self) {
            let now = self.now;
            // Envoy's child ends its parent when the drain time is over, as long as that child lives.
            let over: Vec<Id> = self.drained(now);
            for id in over {
                self.end(id);
                self.dead.push((id, true));
            }
            let dead: Vec<(Id, bool)> = self.dead.drain(..).collect();
            for (id, _) in self.lineage.unready() {
                if self.processes.get(&id).is_some_and(|process| process.phase == Phase::Serving) {
                    self.lineage.ready(id, now, DRAIN);
                }
            }
            for (id, took_over) in dead {
                if took_over {
                    self.lineage.ready(id, now, DRAIN);
                }
                self.lineage.ended(id, now);
            }
            while let Some(step) = self.lineage.next(now, READY_PATIENCE) {
                self.take(step);
                self.count();
            }
        }

        fn drained(&self, now: Instant) -> Vec<Id> {
            let has_child = self.serving() > 0;
            let over = |process: &Process| has_child && process.drains_until.is_some_and(|until| until <= now);
            self.processes.iter().filter(|(_, process)| over(process)).map(|(id, _)| *id).collect()
        }

        fn take(&mut self, step: ProcessStep) {
            match step {
                ProcessStep::Begin(id) => self.start(id, None),
                ProcessStep::Succeed { id, .. } => {
                    let others = self.processes.values().filter(|process| process.phase != Phase::Serving).count();
                    assert_eq!(others, 0, "it would exit, or cut connections that drain");
                    let parent = self.processes.keys().next().copied();
                    self.start(id, parent);
                }
                ProcessStep::Terminate(id) => {
                    let process = self.processes.get(&id);
                    assert!(process.is_none_or(|process| process.phase == Phase::Draining));
                    self.end(id);
                    self.dead.push((id, true));
                }
                ProcessStep::Kill(id) => {
                    let process = self.processes.get(&id);
                    assert!(process.is_none_or(|process| process.phase != Phase::Serving));
                    self.end(id);
                    self.lineage.ended(id, self.now);
                }
            }
        }

        fn start(&mut self, id: Id, parent: Option<Id>) {
            if std::mem::take(&mut self.no_start) {
                self.lineage.ended(id, self.now);
                return;
            }
            let phase = Phase::Starting;
            let process = Process { phase, parent, config: self.config, orphan: false, drains_until: None };
            self.processes.insert(id, process);
        }

        /// Checks that without further faults one process serves in the end, with the last change.
        fn settles(&mut self) {
            self.no_start = false;
            // A change whose takeovers failed too often waits for the next one.
            self.act(Act::Change);
            for _ in 0..200 {
                self.become_ready();
                self.act(Act::Look);
                self.now += TICK * 20;
            }
            let phases: Vec<_> = self.processes.values().map(|process| (process.phase, process.config)).collect();
            assert_eq!(phases, [(Phase::Serving, self.config)]);
        }
    }

    #[test]
    fn in_any_order_of_changes_deaths_and_readiness_one_envoy_serves() {
        let mut runner = TestRunner::new(Config { cases: 1000, failure_persistence: None, ..Config::default() });
        let least = std::cell::Cell::new(usize::MAX);
        let checked = runner.run(&prop::collection::vec(act(), 1..60), |acts| {
            let mut world = World::started();
            for act in acts {
                world.act(act);
            }
            world.settles();
            least.set(least.get().min(world.serving_min));
            prop_assert!(world.serving_min >= 1, "nobody served");
            Ok(())
        });
        println!("serving_envoys_min={}", least.get());
        checked.unwrap();
    }

    #[test]
    fn two_changes_in_quick_succession_end_no_envoy_and_the_second_waits_for_the_first_ones_parent() {
        let mut world = World::started();
        world.act(Act::Change);
        world.act(Act::Look);
        world.act(Act::Change);
        world.act(Act::Look);
        assert_eq!(world.processes.len(), 2, "the second change waits");
        world.act(Act::Ready);
        world.act(Act::Look);
        assert_eq!(world.processes.len(), 2, "the first parent still finishes");
        world.act(Act::Time(61_000));
        world.act(Act::Look);
        assert!(world.lineage.is_taking_over());
        world.settles();
    }

    #[test]
    fn a_child_that_dies_before_it_is_ready_leaves_its_parent_serving_and_is_tried_again() {
        let mut world = World::started();
        let parent = world.lineage.present();
        world.act(Act::Change);
        for attempt in 1..=MOST_ATTEMPTS {
            world.act(Act::Look);
            assert!(world.lineage.is_taking_over(), "attempt {attempt}");
            world.act(Act::Death(1));
            world.act(Act::Look);
            assert_eq!(world.lineage.present(), parent);
            world.act(Act::Time(2_000));
        }
        world.act(Act::Look);
        assert!(!world.lineage.is_taking_over(), "it was tried often enough");
        assert_eq!(world.serving(), 1);
    }
}
