//! The run itself: starts, waits, serves, applies changes, restarts dead children, stops.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::challenges::ChallengeServer;
use super::child::{self, stop_all};
use super::debounce::Debounce;
use super::diagnosis::Diagnosis;
use super::disk_space;
use super::envoy::Envoy;
use super::events::{Event, FileWatch, forward_signals};
use super::generation::{COREFILE, GenerateError, Generation, RENEWALS, RunContext};
use super::held_connections::HeldConnections;
use super::link_watch::LinkWatch;
use super::locate::{self, LocateError, Located, Overridden, locate};
use super::log::{Dialect, Form, Level, RecentPages};
use super::notify::ServiceManager;
use super::ports::{self, PortError};
use super::probe::{XdsCounters, is_ready, link_is_up, remembered_urls};
use super::report::{self, Publisher, Refusal, RunReport, now, process_start};
use super::resolvers::{DnsReport, ResolverWatch};
use super::say;
use super::service::Service;
use super::set_up::SetUp;
use super::state::{StateError, StateFolder};
use super::status_page::{StatusPages, StatusServer};
use super::tree::{WriteError, write_tree};
use super::watches;
use crate::config::units::Bytes;
use crate::config::{Cache, Loaded, Settings, Sockets};
use crate::measure::Noticed;
use crate::render::{AccessLog, NearSockets};

/// The options of `longhaul run`.
#[derive(Debug, Clone)]
pub struct Options {
    /// The configuration file.
    pub file: PathBuf,
    /// The state folder, if not the default one.
    pub state: Option<PathBuf>,
    /// Programs and filters given by option.
    pub overridden: Overridden,
    /// The destination of the access log.
    pub access_log: AccessLog,
    /// The pages that `listen.status` serves.
    pub pages: Arc<dyn StatusPages>,
    /// The form of the log on stderr.
    pub log_form: Form,
}

/// The reason why a run could not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A program, the filter or the certificate authorities are missing.
    #[error(transparent)]
    Locate(#[from] LocateError),
    /// The state folder cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// Sockets that cannot be used, one on a line.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\nerror: "))]
    Ports(Vec<PortError>),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A file could not be rendered.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The cache folder cannot be made.
    #[error("cannot use the folder {}, set by `cache.dir`: {error}", path.display())]
    CacheFolder {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The disk is smaller than the cache. Once it is full, Envoy aborts the responses that it caches.
    #[error(
        "`cache.size` is {size}, and the disk of {}, set by `cache.dir`, has {room} free. On a full disk, responses break off. Write a smaller size, or another folder",
        path.display()
    )]
    CacheTooLarge {
        /// The cache folder.
        path: PathBuf,
        /// The size in the settings.
        size: Bytes,
        /// The bytes that are free or already belong to the cache.
        room: Bytes,
    },
    /// A program could not be started, or ended before it served.
    #[error("{0}")]
    Start(String),
    /// Signals or file watches are not available.
    #[error("cannot set up: {0}")]
    System(String),
    /// A second signal to stop arrived.
    #[error("stopped at once")]
    Interrupted,
}

/// The longest time for a start. Compiling a filter on a busy machine takes most of it.
const START_PATIENCE: Duration = Duration::from_mins(3);
/// The longest time for an orderly end.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// The interval at which children are checked.
const TICK: Duration = Duration::from_millis(100);
/// The interval at which process 1 reaps orphans.
const REAP: Duration = Duration::from_millis(500);
/// The interval at which the machine's addresses are checked, and files on filesystems that report no changes.
const LOOK: Duration = Duration::from_secs(30);

/// Starts everything for the accepted file, serves until asked to stop, and leaves nothing behind.
pub fn run(options: &Options, loaded: Loaded) -> Result<(), RunError> {
    let located = locate(&options.overridden)?;
    let state = StateFolder::open(options.state.as_deref(), &options.file)?;
    let (sender, events) = mpsc::channel();
    forward_signals(sender.clone()).map_err(|error| RunError::System(error.to_string()))?;
    let watch = watches::are_to_be_had(1)
        .map_err(|error| error.to_string())
        .and_then(|()| FileWatch::new(sender.clone()).map_err(|error| error.to_string()))
        .map_err(RunError::System)?;
    let loaded = ports::on_this_machine(loaded);
    let wanted = ports::wanted(&loaded.settings);
    refuse(ports::check_patiently(&wanted))?;
    let [dns_ready, resolver, hold, hold_pipe, dns, dialled, challenges] =
        ports::free_loopback(&wanted).map_err(|error| RunError::System(error.to_string()))?;
    let machine = RunContext {
        root: state.rendered.clone(),
        kept: state.kept.clone(),
        filters: locate::filters(&loaded.settings, &options.overridden.filters)?,
        dns_ready,
        resolver,
        near: NearSockets { hold, hold_pipe, dns, dialled, challenges },
        renewals: Some(state.rendered.join(RENEWALS)),
        access_log: options.access_log.clone(),
        marks_pages: true,
    };
    let generation = Generation::of(loaded, &machine)?;
    prepare_folders(&generation.settings)?;
    write_tree(&machine.root, &generation.tree, None)?;
    if let Some(warning) = too_few_files(&generation.settings) {
        say(Level::Warning, &warning);
    }
    let set_up = SetUp::of(&generation.settings);
    let publisher = Publisher::new(&state.path);
    let pages = RecentPages::default();
    let status_page = StatusServer::new(Arc::clone(&options.pages), publisher.last(), pages.clone());
    let mut run = Run {
        envoy: Envoy::new(located.envoy.clone(), &machine.root, pages),
        dns: Service::new(dns_program(&located, &machine), machine.dns_ready),
        options: options.clone(),
        machine,
        generation,
        holders: HeldConnections::default(),
        challenges: ChallengeServer::default(),
        set_up,
        resolvers: None,
        dns_state: DnsReport::default(),
        link: None,
        link_state: Noticed::default(),
        sender,
        diagnosis: Diagnosis::default(),
        refusal: None,
        last_refusal: None,
        applied: Applied { at: now(), changes: 0, config_sha256: String::new() },
        started: now(),
        publisher,
        status_page,
        manager: ServiceManager::of_environment(),
        events,
        watch,
        _state: state,
    };
    run.applied.config_sha256 = run.generation.config_sha256();
    let outcome = run.start().and_then(|started| if started { run.serve() } else { Ok(()) });
    let stopped = run.stop();
    outcome.and(stopped)
}

/// A run. `apply` holds the methods that change it.
pub(super) struct Run {
    pub(super) options: Options,
    pub(super) machine: RunContext,
    pub(super) generation: Generation,
    /// The reason why the present files are not the ones in force.
    pub(super) refusal: Option<String>,
    /// The last refusal, also if it no longer stands.
    pub(super) last_refusal: Option<Refusal>,
    pub(super) applied: Applied,
    started: u64,
    publisher: Publisher,
    pub(super) status_page: StatusServer,
    pub(super) manager: ServiceManager,
    pub(super) envoy: Envoy,
    pub(super) dns: Service,
    /// Empty unless this box is a remote.
    holders: HeldConnections,
    /// Serves nothing without `tls.acme.webroot`.
    challenges: ChallengeServer,
    /// The facts of the configuration in force for `longhaul status`.
    pub(super) set_up: SetUp,
    /// None until both children serve.
    pub(super) resolvers: Option<ResolverWatch>,
    dns_state: DnsReport,
    /// None until both children serve.
    pub(super) link: Option<LinkWatch>,
    link_state: Noticed,
    sender: Sender<Event>,
    diagnosis: Diagnosis,
    events: Receiver<Event>,
    pub(super) watch: FileWatch,
    _state: StateFolder,
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
    /// Starts both children, one after the other. Returns false if asked to stop meanwhile.
    fn start(&mut self) -> Result<bool, RunError> {
        self.watch.follow(&self.generation.inputs);
        let failed = |name: &str, error: io::Error| RunError::Start(format!("cannot start {name}: {error}"));
        self.envoy.start(&self.generation).map_err(|error| failed("Envoy", error))?;
        if !self.wait_for("Envoy", |run| run.envoy.is_ready())? {
            return Ok(false);
        }
        self.envoy.tend(&self.generation);
        self.refuse_half_started()?;
        // CoreDNS comes second: it does not steer clients to a proxy that does not respond, and would retry only after
        // a while.
        self.dns.start().map_err(|error| failed("CoreDNS", error))?;
        if !self.wait_for("CoreDNS", |run| is_ready(run.machine.dns_ready))? {
            return Ok(false);
        }
        self.challenges.tend(&self.generation.settings, self.machine.near);
        self.status_page.tend(&self.generation.settings);
        // Published before the line that other programs wait for, so that they can query the run at once.
        let report = self.report();
        self.publisher.publish(report);
        self.announce()?;
        self.manager.ready(&self.status_line());
        Ok(true)
    }

    /// Waits until `ready`. Returns false if asked to stop meanwhile. A child that ends now is an error, because a
    /// restart would not help.
    fn wait_for(&mut self, name: &str, ready: impl Fn(&Self) -> bool) -> Result<bool, RunError> {
        let deadline = Instant::now() + START_PATIENCE;
        while !ready(self) {
            match self.events.recv_timeout(TICK) {
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(false),
                // The first check while serving finds changes that came during the start.
                Ok(Event::Reload | Event::FilesChanged | Event::ReopenLogs | Event::Dns(_) | Event::Link(_))
                | Err(RecvTimeoutError::Timeout) => {}
            }
            for (name, ended) in [("Envoy", self.envoy.ended()), ("CoreDNS", self.dns.ended())] {
                if let Some(status) = ended {
                    let how = child::describe(status);
                    return Err(RunError::Start(format!(
                        "{name} {how} before it was ready; its own messages are above"
                    )));
                }
            }
            if Instant::now() > deadline {
                let patience = START_PATIENCE.as_secs();
                return Err(RunError::Start(format!(
                    "{name} did not respond within {patience} s; its own messages are above"
                )));
            }
        }
        Ok(true)
    }

    /// Refuses a start with missing listeners. Envoy reports that it is ready even if it refused one.
    fn refuse_half_started(&self) -> Result<(), RunError> {
        let counters = XdsCounters::read(self.generation.settings.listen.admin).unwrap_or_default();
        let refused = counters.refused_since(&XdsCounters::default());
        if refused.is_empty() {
            return Ok(());
        }
        Err(RunError::Start(format!(
            "Envoy refused part of its configuration ({}); its own messages are above",
            refused.join(", ")
        )))
    }

    /// Prints the only line on stdout.
    fn announce(&self) -> Result<(), RunError> {
        let line = ready_line(&self.generation.settings);
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{line}")
            .and_then(|()| stdout.flush())
            .map_err(|error| RunError::Start(format!("cannot write to stdout: {error}")))
    }

    fn serve(&mut self) -> Result<(), RunError> {
        let watch = ResolverWatch::start(&self.generation.settings, self.sender.clone());
        self.resolvers = Some(watch.map_err(|error| RunError::System(error.to_string()))?);
        let watch = LinkWatch::start(&self.generation.settings, self.sender.clone());
        self.link = Some(watch.map_err(|error| RunError::System(error.to_string()))?);
        // The first check is due at once, because a file may have changed during the start.
        let mut settling = Debounce::default();
        settling.changed(Instant::now());
        let mut looked_at = Instant::now();
        let mut reaped_at = Instant::now();
        loop {
            let mut event = match self.events.recv_timeout(TICK) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            // All at once: the rest of the loop waits for Envoy's responses, and a stop must not wait for many of them.
            while let Some(came) = event {
                match came {
                    Event::Stop => return Ok(()),
                    Event::Reload => {
                        say(Level::Info, "checking the files (SIGHUP)");
                        // `systemctl reload` waits for the message that it is done, even if nothing changed.
                        self.manager.reloading();
                        settling.changed(Instant::now());
                    }
                    Event::FilesChanged => settling.changed(Instant::now()),
                    Event::ReopenLogs => {
                        say(Level::Info, "opening the access log again (SIGUSR1)");
                        self.envoy.reopen_logs();
                    }
                    Event::Dns(state) => self.dns_state = state,
                    Event::Link(noticed) => self.link_state = noticed,
                }
                event = self.events.try_recv().ok();
            }
            let due = settling.is_due(Instant::now()) || looked_at.elapsed() >= LOOK;
            // While another Envoy starts, a change waits: a third one would end both.
            if due && !self.envoy.is_taking_over() {
                let again = self.look();
                self.manager.reloaded();
                self.exchange_full_envoy();
                settling.looked();
                looked_at = Instant::now();
                if again {
                    settling.changed(looked_at);
                }
            }
            self.envoy.tend(&self.generation);
            self.dns.tend();
            self.challenges.tend(&self.generation.settings, self.machine.near);
            self.holders.tend(&self.generation.settings, self.machine.near, |when_down| {
                link_is_up(self.envoy.admin()?, when_down)
            });
            self.diagnosis.tend(&self.generation.settings, self.holders.is_away());
            if process::id() == 1 && reaped_at.elapsed() >= REAP {
                let own: Vec<u32> = self.envoy.pids().chain(self.dns.pid()).collect();
                child::reap_orphans(&own);
                reaped_at = Instant::now();
            }
            self.status_page.tend(&self.generation.settings);
            let report = self.report();
            self.publisher.publish(report);
            let status = self.status_line();
            self.manager.alive(&status);
        }
    }

    /// Returns the line for `systemctl status`.
    fn status_line(&self) -> String {
        let role = self.generation.settings.role.as_str();
        if self.envoy.admin().is_none() {
            "Envoy has ended and is restarting".to_owned()
        } else if self.refusal.is_some() {
            format!("Serving as {role}; the present files were refused")
        } else if self.envoy.is_taking_over() {
            format!("Serving as {role}; another Envoy takes over")
        } else {
            format!("Serving as {role}; changes applied: {}", self.applied.changes)
        }
    }

    /// Replaces an Envoy whose cache remembers too many URLs. The cache keeps a note of every requested URL, and the
    /// notes must not fill the heap.
    fn exchange_full_envoy(&mut self) {
        let settings = &self.generation.settings;
        let Some(admin) = self.envoy.admin().filter(|_| matches!(settings.cache, Cache::Disk { .. })) else { return };
        if self.envoy.is_being_exchanged() {
            return;
        }
        let most = settings.limits.urls;
        if let Some(urls) = remembered_urls(admin).filter(|urls| *urls > u64::from(most)) {
            say(
                Level::Info,
                &format!(
                    "Envoy's cache remembers {urls} different URLs (`limits.urls` {most}): another Envoy takes over, and the present one ends when its connections have"
                ),
            );
            self.envoy.replace();
        }
    }

    /// Returns the admin address of the present Envoy. A changed `listen.admin` applies from the next process on.
    fn admin(&self) -> SocketAddr {
        self.envoy.admin().unwrap_or(self.generation.settings.listen.admin)
    }

    fn report(&self) -> RunReport {
        let pid = process::id();
        RunReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            role: self.generation.settings.role.as_str().to_owned(),
            pid,
            process_start: process_start(pid).unwrap_or(0),
            started: self.started,
            file: self.generation.settings.file.clone(),
            config_sha256: self.applied.config_sha256.clone(),
            in_force_since: self.applied.at,
            changes: self.applied.changes,
            refused: self.last_refusal.clone().map(|refusal| Refusal { standing: self.refusal.is_some(), ..refusal }),
            listen: report::Sockets {
                admin: self.admin(),
                status: self.status_page.socket(),
                ..report::Sockets::of(&self.generation.settings)
            },
            set_up: self.set_up.clone(),
            dns: self.dns_state.clone(),
            link: self.link_state.clone(),
            pages: Vec::new(),
            access_log: self.machine.access_log.clone(),
            envoy: self.envoy.report(),
            coredns: self.dns.report(),
        }
    }

    fn stop(&mut self) -> Result<(), RunError> {
        self.manager.stopping();
        let mut children: Vec<_> = self.envoy.take_all().into_iter().chain(self.dns.take()).collect();
        let events = &self.events;
        let mut hurried = false;
        stop_all(&mut children, STOP_PATIENCE, || {
            hurried |= events.try_iter().any(|event| matches!(event, Event::Stop));
            hurried
        });
        self.envoy.clean_up();
        if hurried { Err(RunError::Interrupted) } else { Ok(()) }
    }
}

fn dns_program(located: &Located, machine: &RunContext) -> child::Program {
    let corefile = machine.root.join(COREFILE);
    child::Program {
        name: "CoreDNS",
        path: located.coredns.clone(),
        dialect: Dialect::CoreDns,
        arguments: vec!["-quiet".into(), "-conf".into(), corefile.into()],
    }
}

/// Returns a warning if the limit of open files is too low. Each connection takes two files, one to the client and one
/// to the origin.
pub(super) fn too_few_files(settings: &Settings) -> Option<String> {
    let connections = settings.limits.connections;
    let wanted = u64::from(connections) * 2;
    child::most_files().filter(|most| *most < wanted).map(|most| {
        format!(
            "`limits.connections` {connections} needs {wanted} open files, but the limit of this process is {most}; raise the limit (systemd: LimitNOFILE={wanted})"
        )
    })
}

pub(super) fn refuse(occupied: Vec<PortError>) -> Result<(), RunError> {
    if occupied.is_empty() { Ok(()) } else { Err(RunError::Ports(occupied)) }
}

pub(super) fn prepare_folders(settings: &Settings) -> Result<(), RunError> {
    if let Cache::Disk { dir, size, .. } = &settings.cache {
        if let Some(refusal) = disk_space::refusal(dir, *size) {
            return Err(refusal);
        }
        let error = |error| RunError::CacheFolder { path: dir.clone(), error };
        fs::create_dir_all(dir).map_err(error)?;
        // Envoy would start and cache nothing, without a message.
        tempfile::Builder::new().prefix(".longhaul-").tempfile_in(dir).map_err(error)?;
    }
    Ok(())
}

/// Returns `ready http=127.0.0.1:8080 ...`: the sockets by their keys.
fn ready_line(settings: &Settings) -> String {
    let listen = &settings.listen;
    let of_clients = |sockets: &Option<Sockets>| sockets.as_ref().map(ToString::to_string);
    let own = |socket: Option<SocketAddr>| socket.map(|socket| socket.to_string());
    let sockets = [
        (ports::http_key(settings).trim_start_matches("listen."), of_clients(&listen.http)),
        ("split.listen", own(settings.role.dialled_in())),
        ("tls", of_clients(&listen.tls)),
        ("dns", of_clients(&listen.dns)),
        ("admin", Some(listen.admin.to_string())),
        ("metrics", own(listen.dns.as_ref().and(listen.metrics))),
    ];
    let words = sockets.iter().filter_map(|(key, socket)| socket.as_ref().map(|socket| format!(" {key}={socket}")));
    format!("ready{}", words.collect::<String>())
}
