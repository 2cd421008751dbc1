//! The run itself: serves, applies changes, and restarts dead children. `start` and `stop` hold its beginning and end.

use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use longhaul_config::{AccessLog, Loaded};
use longhaul_derive::Carrier;
use longhaul_observe::Endpoint;
use longhaul_observe::compare::Compared;
use longhaul_observe::measure::{Noticed, PairEnd, Silent};
use longhaul_observe::report::{self, DnsReport, PairReport, ProblemRecord, Refusal, RunReport, SetUp, process_start};
use longhaul_observe::why::{CostReport, Measured};
use longhaul_render::{Emptied, NearSockets, ProgramSockets, Weighing};

use super::acceptance::{Acceptance, Deaths};
use super::access_log::{Destination, Rotation};
use super::cache_fit::FittedCache;
use super::challenges::ChallengeServer;
use super::child;
use super::clients::Clients;
use super::compare_watch;
use super::diagnosis::{Diagnosis, Refusals};
use super::envoy::Envoy;
use super::error::RunError;
use super::events::{Event, FileWatch, Inbox, Stop, forward_signals};
use super::exchange::Owed;
use super::former_cache;
use super::generation::{COREFILE, Generation, RENEWALS, RunContext};
use super::ground_reports;
use super::health::{HealthServer, Phase, Vitals};
use super::held_connections::HeldConnections;
use super::history::{InForce, Recorder};
use super::link_watch;
use super::links_in_use;
use super::locate::{self, Located, Overridden, locate};
use super::log::{Dialect, Form, Heard, Level};
use super::lost_connections::Lost;
use super::metrics_page::MetricsServer;
use super::notices::Notices;
use super::notify::ServiceManager;
use super::ports::{self, Present};
use super::preflight::{refuse, too_few_files};
use super::private::{ADMIN, DNS_METRICS, PrivateFolder, TOLD};
use super::probe::{link_is_up, passing_grounds};
use super::problem_watch::{self, Tell};
use super::publisher::{Publisher, now};
use super::rate_watch;
use super::resolvers;
use super::rounds::{self, Came, Serving};
use super::say;
use super::service::{Ready, Service};
use super::side_program::{IMAGES, OBJECTS, SideProgram};
use super::silence_watch;
use super::state::{StateFolder, hide_new_files, spare_folder};
use super::status_page::StatusServer;
use super::tree::{remove_former, write_tree};
use super::watch_thread::Watch;
use super::watches;

/// The options of `longhaul run`.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// The configuration file.
    pub file: PathBuf,
    /// The state folder, if not the default one.
    pub state: Option<PathBuf>,
    /// Programs and filters given by option.
    pub overridden: Overridden,
    /// The destination of the access log, if it is not that of the file.
    pub access_log: Option<AccessLog>,
    /// The form of the log on stderr.
    pub log_form: Form,
}

/// The interval at which children are checked.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// The interval at which process 1 reaps orphans.
const REAP: Duration = Duration::from_millis(500);

/// Starts everything for the accepted file, serves until asked to stop, and leaves nothing behind.
pub(crate) fn run(options: &Options, loaded: Loaded) -> Result<(), RunError> {
    let located = locate(&options.overridden)?;
    let state = StateFolder::open(options.state.as_deref(), &options.file, spare_folder().as_deref())?;
    hide_new_files();
    let (sender, events) = mpsc::channel();
    forward_signals(sender.clone()).map_err(|error| RunError::System(error.to_string()))?;
    let watch = file_watch(&sender).map_err(RunError::System)?;
    let mut loaded = ports::for_a_run(loaded, Present { may_end: true, ..Present::default() });
    former_cache::clear(&loaded.settings.cache);
    let cache = FittedCache::of(&mut loaded.settings);
    let wanted = ports::wanted(&loaded.settings);
    refuse(ports::check_patiently(&wanted))?;
    let [dns_ready, resolver, hold, hold_pipe, dns, lookups, challenges] =
        ports::free_loopback(&wanted).map_err(|error| RunError::System(error.to_string()))?;
    let images = locate::images(&loaded.settings, options.overridden.images.as_deref())?;
    let objects = locate::objects(&loaded.settings, options.overridden.objects.as_deref())?;
    let machine = RunContext {
        root: state.rendered.clone(),
        kept: state.kept.clone(),
        admin: ADMIN.into(),
        dns_metrics: Some(DNS_METRICS.into()),
        told: Some(TOLD.into()),
        filters: locate::filters(&loaded.settings)?,
        native: locate::native_place(Some(located.envoy.clone()), &state.path),
        dns_ready,
        resolver,
        images: ProgramSockets::below(&state.path, "images").filter(|_| images.is_some()),
        objects: ProgramSockets::below(&state.path, "objects").filter(|_| objects.is_some()),
        near: NearSockets { hold, hold_pipe, dns, lookups, challenges },
        renewals: Some(state.rendered.join(RENEWALS)),
        access_log: Destination::usable(&loaded.settings.log, options.access_log.as_ref(), &state.path),
        weighing: Weighing::default(),
        emptied: Emptied::default(),
        marks_pages: true,
    };
    machine.access_log.report(None);
    let generation = Generation::of(loaded, &machine)?;
    generation.say_engine();
    write_tree(&machine.root, &generation.tree)?;
    remove_former(&machine.root, &generation.tree);
    say_shortages(&generation, &machine, [images.is_some(), objects.is_some()]);
    let publisher = Publisher::new(&state.path);
    let heard = Heard::default();
    let [admin, dns_metrics] = [state.private.admin(), state.private.dns_metrics()].map(Endpoint::Unix);
    let metrics_page = MetricsServer::new(
        admin,
        dns_metrics,
        machine.objects.as_ref().map(|sockets| Endpoint::Unix(sockets.metrics.clone())),
    );
    let status_page = StatusServer::new(publisher.last(), heard.pages.clone());
    let mut run = Run {
        envoy: Envoy::new(located.envoy.clone(), &machine, state.private.clone(), heard.clone()),
        dns: Service::new(
            dns_program(&located, &machine.root.join(COREFILE), &state.private),
            Ready::Http(machine.dns_ready),
        ),
        images: SideProgram::new(IMAGES, images, machine.images.clone()),
        objects: SideProgram::new(OBJECTS, objects, machine.objects.clone()),
        options: options.clone(),
        machine,
        applied: Applied { at: now(), changes: 0, config_sha256: generation.config_sha256() },
        set_up: SetUp::of(&generation.settings),
        generation,
        cache,
        holders: HeldConnections::default(),
        clients: Clients::open(&state, heard.clone(), sender.clone())?,
        challenges: ChallengeServer::default(),
        watches: Vec::new(),
        dns_state: DnsReport::default(),
        link_state: Noticed::default(),
        lost: Vec::new(),
        other_end: PairReport::default(),
        notices: None,
        problems: Vec::new(),
        costs: CostReport::default(),
        compared: None,
        sender,
        diagnosis: Diagnosis::default(),
        refusals: Refusals::default(),
        acceptance: Acceptance::default(),
        owed: Owed::default(),
        last_refusal: None,
        phase: Phase::default(),
        started: now(),
        publisher,
        metrics_page,
        status_page,
        health: HealthServer::default(),
        manager: ServiceManager::of_environment(),
        events: Inbox::new(events),
        watch,
        history: Recorder::open(&state.kept),
        state,
        rotation: Rotation::new(),
        reaped_at: Instant::now(),
    };
    run.live()
}

/// Returns a watch of files, if the system has one left.
fn file_watch(events: &Sender<Event>) -> Result<FileWatch, String> {
    watches::are_to_be_had(1).map_err(|error| error.to_string())?;
    FileWatch::new(events.clone()).map_err(|error| error.to_string())
}

/// Warns of what this machine lacks for the configuration. `has_programs`: the one for images and the one for objects were
/// found.
fn say_shortages(generation: &Generation, machine: &RunContext, has_programs: [bool; 2]) {
    let [has_images, has_objects] = has_programs;
    let why = |has_program, name| {
        if has_program {
            "the path of the state folder is too long for sockets".to_owned()
        } else {
            format!("{name} was not found")
        }
    };
    let settings = &generation.settings;
    let images_stay = generation.derived.images.on && machine.images.is_none();
    let caches_objects = settings.cache.is_on_disk();
    let nothing_cached = caches_objects && machine.objects.is_none();
    let shortages = [
        too_few_files(settings),
        images_stay.then(|| format!("images stay as their origins send them: {}", why(has_images, "longhaul-images"))),
        nothing_cached.then(|| format!("nothing is cached: {}", why(has_objects, "longhaul-objects"))),
    ];
    for warning in shortages.into_iter().flatten() {
        say(Level::Warning, &warning);
    }
}

/// A run. `apply` holds the methods that change it.
pub(super) struct Run {
    pub(super) options: Options,
    pub(super) machine: RunContext,
    pub(super) generation: Generation,
    /// The cache of the file, and what this machine lacks for it.
    pub(super) cache: FittedCache,
    pub(super) acceptance: Acceptance,
    pub(super) owed: Owed,
    /// The last refusal, also if it no longer stands.
    pub(super) last_refusal: Option<Refusal>,
    pub(super) phase: Phase,
    pub(super) applied: Applied,
    started: u64,
    pub(super) publisher: Publisher,
    pub(super) metrics_page: MetricsServer,
    pub(super) status_page: StatusServer,
    health: HealthServer,
    pub(super) manager: ServiceManager,
    pub(super) envoy: Envoy,
    pub(super) dns: Service,
    pub(super) images: SideProgram,
    pub(super) objects: SideProgram,
    /// Empty unless this box is a remote.
    pub(super) holders: HeldConnections,
    /// Empty unless this box is an end of a pair.
    clients: Clients,
    /// Serves nothing without `tls.acme.webroot`.
    pub(super) challenges: ChallengeServer,
    /// The facts of the configuration in force for `longhaul status`.
    pub(super) set_up: SetUp,
    /// Empty until both children serve.
    pub(super) watches: Vec<Watch>,
    pub(super) dns_state: DnsReport,
    pub(super) link_state: Noticed,
    /// The connections over the link that Envoy has and that are gone. Empty once Envoy opens others.
    lost: Vec<Lost>,
    /// The other end of the pair, without the reason of failed handshakes.
    other_end: PairReport,
    /// None until both children serve.
    pub(super) notices: Option<Notices>,
    problems: Vec<ProblemRecord>,
    costs: CostReport,
    pub(super) compared: Option<Compared>,
    sender: Sender<Event>,
    diagnosis: Diagnosis,
    refusals: Refusals,
    pub(super) events: Inbox,
    pub(super) watch: FileWatch,
    pub(super) state: StateFolder,
    pub(super) history: Recorder,
    pub(super) rotation: Rotation,
    reaped_at: Instant,
}

/// The configuration in force.
pub(super) struct Applied {
    /// The time since when it is in force, in seconds since 1970.
    pub(super) at: u64,
    /// The number of changes since the start.
    pub(super) changes: u32,
    /// SHA-256 of the configuration file.
    pub(super) config_sha256: String,
}

impl Run {
    /// Starts, serves, drains if a signal requests it, and ends the children.
    fn live(&mut self) -> Result<(), RunError> {
        let outcome = self.start().and_then(|started| if started { self.serve() } else { Ok(Stop::AtOnce) });
        let outcome = outcome.and_then(|stop| if stop == Stop::Drain { self.drain() } else { Ok(()) });
        let stopped = self.stop(matches!(outcome, Err(RunError::Interrupted)));
        self.clients.accounts.tend(&self.generation.settings, self.clients.heard.billed.take());
        self.clients.accounts.save(&self.generation.settings);
        self.history.end(now());
        outcome.and(stopped)
    }

    /// Records the configuration in force.
    pub(super) fn record(&mut self, is_start: bool) {
        let file = &self.generation.settings.file;
        let in_force = InForce { file, sha256: &self.applied.config_sha256, is_start };
        self.history.begin(now(), env!("CARGO_PKG_VERSION"), in_force);
    }

    /// Serves until asked to stop. Returns how to stop.
    fn serve(&mut self) -> Result<Stop, RunError> {
        let metrics = Endpoint::Unix(self.state.private.dns_metrics());
        let tell = self.tell();
        tell.write(&[], &Measured::default());
        let system = |error: io::Error| RunError::System(error.to_string());
        let (settings, admin) = (&self.generation.settings, Endpoint::Unix(self.state.private.admin()));
        let notices = Notices::start(settings).map_err(system)?;
        self.notices = Some(notices.clone());
        let (kept, last, events) = (&self.state.kept, self.publisher.last(), || self.sender.clone());
        let watches = [
            resolvers::watch(settings, metrics, tell.run.clone(), events()),
            link_watch::watch(settings, events()),
            silence_watch::watch(settings, admin, events()),
            problem_watch::watch(settings, last, kept, tell, notices, events()),
            ground_reports::watch(settings, self.machine.near.lookups, events()),
            compare_watch::watch(settings, events()),
        ];
        self.watches = watches.into_iter().collect::<io::Result<_>>().map_err(system)?;
        Ok(rounds::serve(self))
    }

    /// Keeps a remote's connections open, and reports changes of its link and its ground.
    pub(super) fn tend_link(&mut self) {
        let Generation { settings, derived, .. } = &self.generation;
        let envoy = &self.envoy;
        self.holders.tend(settings, derived, self.machine.near, |when_down| {
            link_is_up(envoy.admin()?, when_down, &PairEnd::of(settings)?)
        });
        let moved = self.holders.follow_ground(settings, || passing_grounds(envoy.admin()?));
        self.clients.names.tend(settings, derived, &self.holders, envoy.pid().zip(envoy.admin()));
        let weighing = &self.machine.weighing;
        self.clients.reports.tend(settings, derived, weighing, self.holders.pipe(), envoy.admin());
        self.clients.rate.follow(settings, derived, weighing, self.generation.is_native());
        // Envoy gives no client a connection to a ground that is down, but it does not know where a stream leads.
        if moved && derived.warm.is_some_and(|warm| warm.carrier == Carrier::Streams) {
            self.lose(Lost::ToFormerGround);
        }
    }

    /// Counts what clients use, and gives each the share of its weight of now. Files that a change owes come first.
    fn tend_weights(&mut self) {
        let Generation { settings, derived, .. } = &self.generation;
        let in_use = self.clients.links.tend(settings, derived);
        let slow = self.clients.accounts.tend(settings, self.clients.heard.billed.take());
        let carried = self.clients.carried.clone();
        let mut next = self.machine.weighing.clone();
        (next.slow, next.in_use, next.carried) = (slow, in_use, carried);
        let reports = self.clients.heard.reports.take();
        next.hear(reports, &settings.role);
        if next == self.machine.weighing || self.owed.is_any() {
            return;
        }
        for group in next.slow.difference(&self.machine.weighing.slow) {
            say(Level::Info, &format!("`{group}` has used its quota up; its clients have a tenth of their weight"));
        }
        for group in self.machine.weighing.slow.difference(&next.slow) {
            say(Level::Info, &format!("`{group}` has its weight again"));
        }
        for line in links_in_use::lines(&self.machine.weighing, &next, settings.link.down) {
            say(Level::Info, &line);
        }
        for line in rate_watch::lines(&self.machine.weighing.carried, &next.carried) {
            say(Level::Info, &line);
        }
        let tree = match self.generation.weighed(next.clone()) {
            Ok(tree) => tree,
            Err(error) => return say(Level::Error, &format!("weights of clients are not applied: {error}")),
        };
        // Without room on the disk, the next round tries again.
        if write_tree(&self.machine.root, &tree).is_ok() {
            self.generation.tree = tree;
            self.machine.weighing = next;
        }
    }

    /// Makes Envoy open other connections over the link where some are gone without its knowledge. Those in use stay. Files
    /// that a change owes come first.
    fn tend_pools(&mut self) {
        if self.lost.is_empty() || self.owed.is_any() {
            return;
        }
        let before = self.machine.emptied;
        let emptied = self.lost.iter().fold(before, |pools, lost| lost.emptied_after(pools));
        match self.generation.with_emptied_pools(emptied) {
            Ok(tree) if write_tree(&self.machine.root, &tree).is_ok() => {
                self.generation.tree = tree;
                self.machine.emptied = emptied;
                if emptied.warm != before.warm {
                    self.holders.fill_new_pool();
                }
                for lost in self.lost.drain(..) {
                    say(Level::Info, &lost.to_string());
                }
            }
            // Without room on the disk, the next round tries again.
            Ok(_) => {}
            Err(error) => {
                say(Level::Error, &format!("lost connections to the ground are not replaced: {error}"));
                self.lost.clear();
            }
        }
    }

    /// Notes lost connections. Of each kind, the last report counts.
    fn lose(&mut self, lost: Lost) {
        self.lost.retain(|one| mem::discriminant(one) != mem::discriminant(&lost));
        self.lost.push(lost);
    }

    /// As process 1 of a container, reaps orphans when that is due.
    pub(super) fn reap(&mut self) {
        if process::id() == 1 && self.reaped_at.elapsed() >= REAP {
            let noticing = self.notices.as_ref().and_then(Notices::pid);
            let own = self.envoy.pids().chain(self.dns.pid()).chain(self.images.pids()).chain(self.objects.pids());
            let own: Vec<u32> = own.chain(noticing).collect();
            child::reap_orphans(&own);
            self.reaped_at = Instant::now();
        }
    }

    /// States the facts of the health endpoint.
    pub(super) fn tend_health(&mut self) {
        let settings = &self.generation.settings;
        let vitals = Vitals {
            phase: self.phase,
            envoy: self.envoy.admin().cloned(),
            coredns: self.dns.pid().map(|_| self.machine.dns_ready),
            needs: PairEnd::of(settings).filter(|_| settings.role.needs_the_other_end()),
        };
        self.health.tend(settings, vitals);
    }

    /// Rotates the access log if that is due. A file that an option names is the operator's to rotate.
    fn tend_log(&mut self) {
        let path = match &self.generation.access_log.log {
            AccessLog::File(path) if self.options.access_log.is_none() => Some(path.as_path()),
            _ => None,
        };
        self.rotation.follow(path);
        let envoy = &self.envoy;
        // The signal ends an Envoy that is still starting.
        let is_ready = || !envoy.is_taking_over() && envoy.is_ready();
        self.rotation.tend(&self.generation.settings.log, is_ready, || envoy.reopen_logs());
    }

    /// Returns the file for the other end, with a text that no other run has.
    fn tell(&self) -> Tell {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Tell { path: self.state.private.told(), run: format!("{:x}-{:x}", since.as_nanos(), process::id()) }
    }

    /// Returns the reason why the access log is not written or not rotated.
    fn log_fault(&self) -> Option<String> {
        let refused = self.generation.access_log.refused.as_deref();
        refused.or_else(|| self.rotation.failure()).map(str::to_owned)
    }

    /// Keeps the metrics page served and its facts up to date.
    pub(super) fn tend_metrics(&mut self) {
        let standing = self.problems.iter().filter(|problem| problem.ended.is_none());
        let problems = standing.map(|problem| problem.kind).collect();
        let groups = self.clients.accounts.report().to_vec();
        self.metrics_page.tend(&self.generation.settings, self.envoy.pid(), problems, groups);
    }

    /// Publishes the present state for `longhaul status`.
    pub(super) fn publish(&mut self) {
        let report = self.report();
        self.publisher.publish(report);
    }

    /// Returns the line for `systemctl status`.
    pub(super) fn status_line(&self) -> String {
        let role = self.generation.settings.role.as_str();
        if self.phase == Phase::Draining {
            format!("Draining as {role}")
        } else if self.envoy.admin().is_none() {
            "Envoy has ended and is restarting".to_owned()
        } else if self.acceptance.is_refused() {
            format!("Serving as {role}; the present files were refused")
        } else if self.envoy.is_taking_over() {
            format!("Serving as {role}; another Envoy takes over")
        } else {
            format!("Serving as {role}; changes applied: {}", self.applied.changes)
        }
    }

    fn report(&self) -> RunReport {
        let private = &self.state.private;
        let pid = process::id();
        RunReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            role: self.generation.settings.role.as_str().to_owned(),
            pid,
            draining: self.phase == Phase::Draining,
            process_start: process_start(pid).unwrap_or(0),
            started: self.started,
            file: self.generation.settings.file.clone(),
            config_sha256: self.applied.config_sha256.clone(),
            in_force_since: self.applied.at,
            changes: self.applied.changes,
            refused: self
                .last_refusal
                .clone()
                .map(|refusal| Refusal { standing: self.acceptance.is_refused(), ..refusal }),
            listen: report::Sockets {
                objects_metrics: self.objects.metrics().filter(|_| self.generation.settings.cache.is_on_disk()),
                metrics: self.metrics_page.socket(),
                status: self.status_page.socket(),
                ..report::Sockets::of(&self.generation.settings, private.admin(), private.dns_metrics())
            },
            set_up: self.set_up.clone(),
            dns: self.dns_state.clone(),
            link: self.link_state.clone(),
            costs: self.costs.clone(),
            ground: self.holders.ground_in_use(&self.generation.settings).map(ToString::to_string),
            other_end: PairReport { handshake: self.diagnosis.found().map(str::to_owned), ..self.other_end.clone() },
            problems: self.problems.clone(),
            state_fault: self.state.fault.clone(),
            cache_fault: self.cache.fault.clone(),
            compared: self.compared.clone(),
            groups: self.clients.accounts.report().to_vec(),
            who: self.clients.accounts.who_folder(&self.generation.settings),
            pages: Vec::new(),
            access_log: self.generation.access_log.log.clone(),
            access_log_fault: self.log_fault(),
            envoy: self.envoy.report(),
            coredns: self.dns.report(),
            images: self.images.report(),
            objects: self.objects.report(),
        }
    }
}

impl Serving for Run {
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// A round of a loop waits for Envoy's responses, and a stop must not wait for a round per event. Events behind a stop
    /// stay.
    fn take_events(&mut self) -> Came {
        let mut came = Came::default();
        let mut event = match self.events.recv_timeout(TICK) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Event::Stop(Stop::AtOnce)),
        };
        while let Some(next) = event {
            match next {
                Event::Stop(stop) => {
                    came.stop = Some(stop);
                    return came;
                }
                Event::Reload => came.reload = true,
                Event::FilesChanged => came.files = true,
                Event::ReopenLogs => {
                    say(Level::Info, "opening the access log again (SIGUSR1)");
                    self.envoy.reopen_logs();
                }
                Event::Dns(state) => self.dns_state = state,
                Event::Link(noticed) => self.link_state = noticed,
                Event::Carried { link, percent: 100.. } => drop(self.clients.carried.remove(&link)),
                Event::Carried { link, percent } => drop(self.clients.carried.insert(link, percent)),
                Event::Silence(silence) => self.other_end.silence = silence,
                Event::Unconnected(state) => self.other_end.unconnected = state,
                Event::Lost(lost) => self.lose(lost),
                Event::Vanishing(bytes) => self.other_end.vanishing = bytes,
                Event::GroundReports(report) => self.other_end.ground = report,
                Event::Problems(problems) => self.problems = problems,
                Event::Costs(costs) => {
                    self.clients.accounts.cross(&costs);
                    self.costs = *costs;
                }
                Event::Compared(compared) => self.compared = compared,
            }
            event = self.events.try_recv();
        }
        came
    }

    fn begin_reload(&mut self) {
        say(Level::Info, "checking the files (SIGHUP)");
        // `systemctl reload` waits for the message that it is done, even if nothing changed.
        self.manager.reloading();
        self.acceptance.try_again();
    }

    fn defers_changes(&self) -> bool {
        self.envoy.defers_changes()
    }

    fn look(&mut self) -> bool {
        let again = self.check_files();
        self.manager.reloaded();
        again
    }

    fn tend(&mut self) {
        self.envoy.hold(self.owed.is_any());
        self.envoy.tend(&self.generation);
        self.leave_native_engine();
        self.dns.tend();
        self.acceptance.follow_deaths(Deaths { envoy: self.envoy.deaths(), names: self.dns.deaths() });
        self.tend_side_programs();
        self.challenges.tend(&self.generation.settings, self.machine.near);
        self.tend_weights();
        self.tend_pools();
        self.tend_link();
        // A handshake over a silent link fails, too, and says nothing.
        let link_is_silent = self.other_end.silence.is_some_and(|silence| silence.kind != Silent::Program);
        let is_refused = self.refusals.tend(&self.generation.settings, self.envoy.admin()) && !link_is_silent;
        self.diagnosis.tend(&self.generation.settings, self.holders.is_away() || is_refused);
        self.reap();
        self.tend_health();
        self.tend_log();
        self.tend_metrics();
        self.status_page.tend(&self.generation.settings);
        self.history.tend(now(), &self.problems);
        self.publish();
        let status = self.status_line();
        self.manager.alive(&status);
    }
}

fn dns_program(located: &Located, corefile: &Path, private: &PrivateFolder) -> child::Program {
    child::Program {
        name: "CoreDNS",
        path: located.coredns.clone(),
        folder: Some(private.path().to_owned()),
        dialect: Dialect::CoreDns,
        arguments: vec!["-quiet".into(), "-conf".into(), corefile.into()],
        environment: Vec::new(),
    }
}
