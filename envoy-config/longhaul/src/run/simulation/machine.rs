//! A run in the simulation. It carries the effects of the shipped rounds, takeovers and exchanges out in a [`World`].

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use longhaul_config::DrainTimes;
use longhaul_render::RenderedTree;

use super::super::acceptance::{Acceptance, Deaths, Refused};
use super::super::clock::Clock;
use super::super::drain::{Drain, Ending as DrainEnding, UnderWay};
use super::super::ending::{Ending, stop_all};
use super::super::envoy::BOOTSTRAP;
use super::super::events::Stop;
use super::super::exchange::{Change, Owed, Paid, Parts, Side, Unconfirmed, exchange};
use super::super::generation::COREFILE;
use super::super::lineage::{Id, Lineage, Loss};
use super::super::probe::XdsCounters;
use super::super::restarts::Restarts;
use super::super::rounds::{Came, DrainEnd, Draining, EnvoyNow, Serving, drain, serve};
use super::super::shifts::Shifts;
use super::super::stop::STOP_PATIENCE;
use super::super::supervisor::TICK;
use super::super::takeover::{self, Processes};
use super::super::tree::{Written, write_tree_to};
use super::children::SimNames;
use super::envoys::Phase;
use super::files::{REFUSED, SIDE, tree_of};
use super::laws::Broken;
use super::orders::{Config, Flaw, Order, SetUp};
use super::world::{Done, World};

/// The attempts, in half an hour, to apply a file that a child refuses.
const MOST_TRIES: u32 = 12;

/// A program beside Envoy that is restarted.
#[derive(Debug)]
pub(super) struct SideService {
    restarts: Restarts,
    pub(super) pid: Option<u32>,
}

/// A run and its world.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) world: World,
    pub(super) lineage: Lineage,
    /// The configuration in force, and its files.
    pub(super) present: Config,
    pub(super) tree: RenderedTree,
    /// The port on which CoreDNS reports that it is ready.
    port: u32,
    /// The sides' ports of an exchange, and the one that is awaited.
    ports: [u32; 2],
    awaited: u32,
    last_port: u32,
    /// The content of the file at the last check.
    inputs: Config,
    pub(super) acceptance: Acceptance,
    owed: Owed,
    names: Restarts,
    pub(super) side: Shifts<SideService, u32>,
    /// The run said that no takeover is tried any more.
    pub(super) said_given_up: bool,
    /// The time of the last attempt to start Envoy, CoreDNS and the program beside Envoy, if it does not run.
    pub(super) gone_since: [Option<Instant>; 3],
    /// The time of the last attempt to apply the file.
    pub(super) tried_at: Instant,
    /// The attempts that a child refused since the last order.
    tries: (Instant, u32),
    deaths: Deaths,
    /// True while a change is being applied.
    pub(super) is_applying: bool,
}

/// Follows the orders.
///
/// # Errors
/// The first law that the run breaks.
pub(super) fn run(set_up: &SetUp, orders: &[Order]) -> Result<Done, Broken> {
    let mut machine = Machine::new(set_up, orders);
    machine.start();
    let stop = serve(&mut machine);
    let at_once = stop == Stop::Drain && machine.drain() == DrainEnd::Interrupted;
    machine.stop(at_once);
    machine.judge_end();
    let World { broken, done, .. } = machine.world;
    broken.map_or(Ok(done), Err)
}

impl Machine {
    fn new(set_up: &SetUp, orders: &[Order]) -> Self {
        Self {
            world: World::new(set_up, orders),
            lineage: Lineage::new(),
            present: Config::FIRST,
            tree: tree_of(Config::FIRST, 0),
            port: 0,
            ports: [0, 0],
            awaited: 0,
            last_port: 0,
            inputs: Config::FIRST,
            acceptance: Acceptance::default(),
            owed: Owed::default(),
            names: Restarts::new(),
            side: Shifts::new(),
            said_given_up: false,
            gone_since: [None; 3],
            tried_at: Instant::now(),
            tries: (Instant::now(), 0),
            deaths: Deaths::default(),
            is_applying: false,
        }
    }

    fn start(&mut self) {
        let tree = self.tree.clone();
        let written = write_tree_to(&mut self.world.disk, Path::new(""), &tree);
        self.world.require(written.is_ok(), || Broken::NotInForce("the first files could not be written".to_owned()));
        let now = self.world.now;
        self.lineage.begin(now);
        while self.world.envoys.serving().is_none() && self.world.broken.is_none() {
            self.tend_envoy();
            self.pass(TICK);
        }
        self.tend_envoy();
        self.names = Restarts::due(self.world.now);
        self.tend_names();
        self.tend_side();
    }

    /// Lets time pass, and judges what came of it.
    fn pass(&mut self, time: Duration) {
        self.world.pass(time);
        self.judge();
    }

    fn tend_envoy(&mut self) {
        let patience = self.world.set_up.patience;
        self.lineage.hold(self.owed.is_any());
        takeover::tend(self, &(), patience);
    }

    fn tend_names(&mut self) {
        let now = self.world.now;
        if let Some(dead) = self.world.names.take_if(|names| names.ended) {
            self.names.died(now - dead.started, now);
            self.world.done.restarts += 1;
            self.deaths.names += 1;
        }
        if self.names.is_due(now) {
            self.gone_since[1] = Some(now);
            if std::mem::take(&mut self.world.no_start) {
                self.names.could_not_start(now);
            } else {
                self.world.names = Some(SimNames::start(&self.world.disk, now));
                self.names.settled();
            }
        }
        let (names, awaited) = (&self.world.names, self.awaited);
        self.names.has_recovered(|| names.as_ref().is_some_and(|names| names.responds_at(awaited, now)));
    }

    fn tend_side(&mut self) {
        let Self { world, side, tree, gone_since, .. } = self;
        let (now, end) = (world.now, world.set_up.end);
        let sides = &mut world.sides;
        side.follow(
            tree.get(SIDE),
            || Some(SideService { restarts: Restarts::due(now), pid: None }),
            |former| former.pid.inspect(|pid| sides.ask_to_end(*pid, now + end)),
        );
        side.forget_retired(|pid| world.sides.has_ended(*pid));
        let Some(service) = side.present_mut() else { return };
        if let Some(dead) = service.pid.take_if(|pid| world.sides.has_ended(*pid)) {
            let started = world.sides.get(dead).map_or(now, |side| side.started);
            service.restarts.died(now - started, now);
            world.done.restarts += 1;
        }
        if service.restarts.is_due(now) {
            gone_since[2] = Some(now);
            if std::mem::take(&mut world.no_start) {
                service.restarts.could_not_start(now);
            } else {
                service.pid = Some(world.sides.start(&world.disk, now));
                service.restarts.settled();
            }
        }
    }

    /// Puts the file's configuration in force, as `Run::apply` does.
    fn apply(&mut self, config: Config) -> Result<(), Refused> {
        if config.flaw == Flaw::File {
            return Err("an unknown key".to_owned().into());
        }
        let same = tree_of(config, self.port);
        let has_same_names = same.get(COREFILE) == self.tree.get(COREFILE);
        self.last_port += u32::from(!has_same_names);
        let port = if has_same_names { self.port } else { self.last_port };
        let next = tree_of(config, port);
        self.ports = [self.port, port];
        let said_before = self.world.done.unconfirmed;
        let present = self.tree.clone();
        let restart = present.get(BOOTSTRAP) != next.get(BOOTSTRAP);
        let change = Change { present: &present, next: &next, restart };
        self.with_owed(|run, owed| exchange(run, change, owed))?;
        self.world.envoys.unconfirmed = self.world.done.unconfirmed > said_before;
        (self.present, self.tree, self.port) = (config, next, port);
        if restart || self.lineage.has_given_up() {
            self.lineage.want();
        }
        // The run said that this change tries again.
        self.said_given_up = false;
        Ok(())
    }

    fn pay(&mut self) -> Result<(), String> {
        let present = self.tree.clone();
        self.ports = [self.port; 2];
        let paid = self.with_owed(|run, owed| owed.pay(run, &present))?;
        if paid != Paid::Nothing {
            self.side.doubt();
        }
        if paid == Paid::Bootstrap {
            self.lineage.want();
            self.said_given_up = false;
        }
        Ok(())
    }

    fn with_owed<T>(&mut self, order: impl FnOnce(&mut Self, &mut Owed) -> T) -> T {
        let mut owed = std::mem::take(&mut self.owed);
        let outcome = order(self, &mut owed);
        self.owed = owed;
        outcome
    }

    fn drain(&mut self) -> DrainEnd {
        let SetUp { wait, drain: time, .. } = self.world.set_up;
        let began = self.world.now;
        let end = drain(self, Drain::begin(DrainTimes { wait, time }, Duration::ZERO, began));
        self.world.done.drains += 1;
        let left = self.world.requests.len();
        match end {
            DrainEnd::Over(DrainEnding::NothingUnderWay) => {
                self.world.require(left == 0, || Broken::RequestCut(format!("{left} requests are under way")));
            }
            DrainEnd::Over(DrainEnding::TimeOver(_)) => {
                let took = self.world.now - began;
                self.world.require(took >= wait + time, || Broken::RequestCut(format!("it took {took:?}")));
            }
            DrainEnd::Interrupted => self.world.done.interrupted += 1,
            DrainEnd::EnvoyEnded | DrainEnd::NoEnvoy => {}
        }
        end
    }

    /// Ends the children, as `Run::stop` does.
    fn stop(&mut self, at_once: bool) {
        let envoys = self.world.envoys.all.keys().copied().map(SimChild::Envoy);
        let names = self.world.names.is_some().then_some(SimChild::Names);
        let sides = self.side.take_all(|service| service.pid).into_iter().map(SimChild::Side);
        let children: Vec<SimChild> = envoys.chain(names).chain(sides).collect();
        let world = RefCell::new(&mut self.world);
        let mut held: Vec<Held<'_, '_>> = children.into_iter().map(|child| Held { child, world: &world }).collect();
        let mut hurried = at_once;
        stop_all(&mut SharedClock(&world), &mut held, STOP_PATIENCE, || {
            hurried |= world.borrow_mut().stops.pop_front().is_some();
            hurried
        });
    }
}

/// A child that the run ends.
#[derive(Debug, Clone, Copy)]
enum SimChild {
    Envoy(Id),
    Names,
    Side(u32),
}

struct Held<'w, 'm> {
    child: SimChild,
    world: &'w RefCell<&'m mut World>,
}

impl Ending for Held<'_, '_> {
    fn ask_to_end(&mut self) {
        let mut world = self.world.borrow_mut();
        let now = world.now;
        match self.child {
            SimChild::Envoy(id) => world.envoys.terminate(id, now),
            SimChild::Names => world.names.iter_mut().for_each(|names| names.ask_to_end(now)),
            SimChild::Side(pid) => {
                let at = now + world.set_up.end;
                world.sides.ask_to_end(pid, at);
            }
        }
    }

    fn has_ended(&mut self) -> bool {
        let world = self.world.borrow();
        match self.child {
            SimChild::Envoy(id) => world.envoys.all.get(&id).is_none_or(|envoy| envoy.phase == Phase::Ended),
            SimChild::Names => world.names.as_ref().is_none_or(|names| names.ended),
            SimChild::Side(pid) => world.sides.has_ended(pid),
        }
    }

    fn kill(&mut self) {
        let mut world = self.world.borrow_mut();
        let now = world.now;
        match self.child {
            SimChild::Envoy(id) => world.envoys.end(id, now),
            SimChild::Names => world.names = None,
            SimChild::Side(pid) => world.sides.all.retain(|other, _| *other != pid),
        }
    }
}

struct SharedClock<'w, 'm>(&'w RefCell<&'m mut World>);

impl Clock for SharedClock<'_, '_> {
    fn now(&self) -> Instant {
        self.0.borrow().now
    }

    fn pause(&mut self, time: Duration) {
        self.0.borrow_mut().pass(time);
    }
}

impl Clock for Machine {
    fn now(&self) -> Instant {
        self.world.now
    }

    fn pause(&mut self, time: Duration) {
        self.pass(time);
    }
}

impl Parts for Machine {
    fn judge(&mut self, bootstrap: &str) -> Result<(), String> {
        // The validation does not find everything.
        let is_refused = bootstrap.contains(REFUSED) && self.inputs.flaw == Flaw::Bootstrap;
        if is_refused { Err("no such field".to_owned()) } else { Ok(()) }
    }

    fn write(&mut self, tree: &RenderedTree) -> Result<Written, String> {
        let written = write_tree_to(&mut self.world.disk, Path::new(""), tree);
        self.world.done.unwritten += u64::from(written.is_err());
        written.map_err(|error| error.to_string())
    }

    fn counters(&mut self) -> Option<XdsCounters> {
        self.world.envoys.counters(self.world.now).map(|text| XdsCounters::parse(&text))
    }

    fn envoy_runs(&mut self) -> bool {
        let phase = self.lineage.present().and_then(|id| self.phase_of(id));
        phase.is_some_and(|phase| phase != Phase::Ended)
    }

    fn unconfirmed(&mut self, _: Unconfirmed) {
        self.world.envoys.unconfirmed = true;
        self.world.done.unconfirmed += 1;
    }

    fn reload_names(&mut self) {
        let at = self.world.now + self.world.set_up.read;
        if let Some(names) = &mut self.world.names {
            names.reload(at);
        }
    }

    fn await_names(&mut self, side: Side) {
        let [present, next] = self.ports;
        self.awaited = if side == Side::Present { present } else { next };
    }

    fn names_respond(&mut self) -> bool {
        let (now, awaited) = (self.world.now, self.awaited);
        self.world.names.as_ref().is_some_and(|names| names.responds_at(awaited, now))
    }

    fn names_run(&mut self) -> bool {
        self.world.names.as_ref().is_some_and(|names| !names.ended)
    }

    fn tend_names(&mut self) {
        Self::tend_names(self);
    }

    fn is_asked_to_stop(&mut self) -> bool {
        !self.world.stops.is_empty()
    }
}

impl Processes for Machine {
    type Configuration = ();

    fn now(&self) -> Instant {
        self.world.now
    }

    fn lineage(&mut self) -> &mut Lineage {
        &mut self.lineage
    }

    fn those_that_ended(&mut self) -> Vec<(Id, String)> {
        let ended = self.world.envoys.all.iter().filter(|(_, envoy)| envoy.phase == Phase::Ended);
        ended.map(|(id, _)| (*id, "ended".to_owned())).collect()
    }

    fn serves(&mut self, _: Id, epoch: u32) -> bool {
        self.world.envoys.admin(self.world.now).is_some_and(|envoy| envoy.epoch == epoch)
    }

    fn took_over(&mut self, (): &()) -> bool {
        if self.world.envoys.starts() {
            return false;
        }
        if self.world.envoys.serving().is_some() {
            self.pass(Duration::from_secs(2));
            return false;
        }
        true
    }

    fn says_starting(&mut self) -> bool {
        self.world.envoys.starts()
    }

    fn drain_of(&self, _: Id) -> Duration {
        self.world.envoys.drain_of()
    }

    fn responds(&mut self) {}

    fn begin(&mut self, id: Id, (): &()) -> io::Result<()> {
        self.gone_since[0] = Some(self.world.now);
        self.world.envoys.forget_dead_successor();
        self.start_envoy(id, 0)
    }

    fn succeed(&mut self, id: Id, epoch: u32, (): &()) -> io::Result<()> {
        self.world.envoys.forget_dead_successor();
        self.world.done.takeovers += 1;
        self.start_envoy(id, epoch)
    }

    fn terminate(&mut self, id: Id) {
        let (now, phase) = (self.world.now, self.phase_of(id));
        let is_right = !matches!(phase, Some(Phase::Starting | Phase::Serving));
        self.world.require(is_right, || Broken::ServingEnded(format!("{id:?} is asked to end and is {phase:?}")));
        let envoy = self.world.envoys.all.get(&id);
        let has_time = envoy.and_then(|envoy| envoy.may_drain_until).is_some_and(|until| now < until);
        self.world.require(!has_time, || Broken::DrainCut(format!("{id:?} is asked to end and has time to drain")));
        self.world.envoys.terminate(id, now);
    }

    fn kill(&mut self, id: Id) {
        let (now, phase) = (self.world.now, self.phase_of(id));
        let is_right = phase != Some(Phase::Serving);
        self.world.require(is_right, || Broken::ServingEnded(format!("{id:?} is killed and serves")));
        self.world.envoys.end(id, now);
    }

    fn forget(&mut self, id: Id) -> Option<u32> {
        let envoy = self.world.envoys.all.get(&id)?;
        let (epoch, has_ended) = (envoy.epoch, envoy.phase == Phase::Ended);
        // A process that runs on is forgotten by the run, and not by the world.
        if has_ended {
            self.world.envoys.all.remove(&id);
        }
        Some(epoch)
    }

    fn report_end(&mut self, _: u32, _: &str, loss: Loss) {
        self.hear(loss);
    }

    fn report_no_start(&mut self, _: &io::Error, loss: Loss) {
        self.hear(loss);
    }
}

impl Machine {
    /// Each attempt puts refused files in force for a moment.
    fn count_try(&mut self) {
        let calm_since = self.world.calm_since;
        if self.tries.0 != calm_since {
            self.tries = (calm_since, 0);
        }
        self.tries.1 += 1;
        let tries = self.tries.1;
        self.world.require(tries <= MOST_TRIES, || Broken::RefusedServes(format!("it is tried {tries} times")));
    }

    fn hear(&mut self, loss: Loss) {
        match loss {
            Loss::Serving(_) => {
                self.world.done.restarts += 1;
                self.deaths.envoy += 1;
            }
            Loss::Successor(again) => {
                self.world.done.failed_takeovers += 1;
                self.said_given_up |= again.is_none();
                self.world.done.given_up += u64::from(again.is_none());
            }
            Loss::Expected => {}
        }
    }

    fn phase_of(&self, id: Id) -> Option<Phase> {
        self.world.envoys.all.get(&id).map(|envoy| envoy.phase)
    }

    fn start_envoy(&mut self, id: Id, epoch: u32) -> io::Result<()> {
        let World { envoys, disk, now, .. } = &mut self.world;
        let started = envoys.begin(id, epoch, disk, *now);
        self.world.keep(started).unwrap_or(Ok(()))
    }
}

impl Serving for Machine {
    fn now(&self) -> Instant {
        self.world.now
    }

    fn take_events(&mut self) -> Came {
        self.stall();
        let world = &self.world;
        if !(world.files_changed || world.reload || !world.stops.is_empty()) {
            self.pass(TICK);
        }
        self.end_a_calm_run();
        let world = &mut self.world;
        let stop = world.stops.pop_front().or(world.broken.is_some().then_some(Stop::AtOnce));
        Came { stop, reload: std::mem::take(&mut world.reload), files: std::mem::take(&mut world.files_changed) }
    }

    fn begin_reload(&mut self) {
        self.acceptance.try_again();
    }

    fn defers_changes(&self) -> bool {
        self.lineage.defers_changes()
    }

    fn look(&mut self) -> bool {
        let config = self.world.file;
        let changed = config != self.inputs;
        if !self.acceptance.is_to_be_tried(changed, false, self.world.now) {
            return false;
        }
        self.inputs = config;
        self.is_applying = true;
        let outcome = self.pay().map_err(Refused::from).and_then(|()| self.apply(config));
        self.is_applying = false;
        self.tried_at = self.world.now;
        match outcome {
            Ok(()) => {
                self.acceptance.accepted();
                self.world.done.applied += 1;
            }
            Err(refused) => {
                let is_new = self.acceptance.refused(&refused, self.world.now);
                self.world.done.refused += u64::from(is_new);
                if refused.by.is_child() {
                    self.count_try();
                }
            }
        }
        false
    }

    fn tend(&mut self) {
        self.tend_envoy();
        self.tend_names();
        self.tend_side();
        self.judge_lists();
        self.acceptance.follow_deaths(self.deaths);
        self.judge();
    }
}

impl Draining for Machine {
    fn now(&self) -> Instant {
        self.world.now
    }

    fn envoy(&mut self) -> EnvoyNow {
        let present = self.lineage.present();
        let phase = present.and_then(|id| self.phase_of(id));
        if self.lineage.is_taking_over() {
            EnvoyNow::TakesOver
        } else if phase == Some(Phase::Ended) {
            EnvoyNow::Ended
        } else if present.is_some() {
            EnvoyNow::Serves
        } else {
            EnvoyNow::Gone
        }
    }

    fn tend_takeover(&mut self) {
        self.tend_envoy();
    }

    fn announce(&mut self) -> bool {
        self.world.envoys.admin(self.world.now).is_some()
    }

    fn under_way(&mut self) -> Option<UnderWay> {
        self.world.envoys.admin(self.world.now)?;
        let count = self.world.requests.len();
        let figures = format!(
            "http.edge_http.downstream_cx_active: {count}\nhttp.edge_http.downstream_rq_active: {count}\n\
             listener.0.0.0.0_80.downstream_cx_active: {count}\n"
        );
        Some(UnderWay::parse(&figures, &BTreeSet::from([80])))
    }

    fn close(&mut self) {
        self.world.is_closed = true;
    }

    fn tend_others(&mut self) {
        self.tend_names();
        self.tend_side();
    }

    fn is_asked_to_stop(&mut self) -> bool {
        self.take_events().stop.is_some()
    }
}
