//! The run itself: start, wait, serve, apply changes, restart what died, stop.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::child::{self, stop_all};
use super::debounce::Debounce;
use super::disk_space;
use super::envoy::Envoy;
use super::events::{Event, FileWatch, forward_signals};
use super::generation::{COREFILE, GenerateError, Generation, RENEWALS, RunContext};
use super::held_connections::HeldConnections;
use super::locate::{self, LocateError, Located, Overridden, locate};
use super::notify::ServiceManager;
use super::ports::{self, PortError};
use super::probe::{XdsCounters, is_ready, link_is_up, remembered_urls};
use super::report::{Publisher, Refusal, RunReport, Sockets, now, process_start};
use super::say;
use super::service::Service;
use super::state::{StateError, StateFolder};
use super::tree::{WriteError, write_tree};
use super::watches;
use crate::config::units::Bytes;
use crate::config::{Cache, Loaded, Settings};
use crate::render::{AccessLog, NearSockets, steers};

/// How `longhaul run` was called.
#[derive(Debug, Clone)]
pub struct Options {
    /// The configuration file.
    pub file: PathBuf,
    /// The state folder, where not the default.
    pub state: Option<PathBuf>,
    /// Programs named by hand.
    pub overridden: Overridden,
    /// Where requests are logged.
    pub access_log: AccessLog,
}

/// Why a run could not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A program, the filter or the certificate authorities are missing.
    #[error(transparent)]
    Locate(#[from] LocateError),
    /// The state folder cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// Sockets that cannot be ours, one line each.
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
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Envoy breaks off what it means to keep once the disk is full.
    #[error(
        "`cache.size` is {size}, and the disk of {}, set by `cache.dir`, has {room} free. On a full disk, responses break off. Write a smaller size, or another folder",
        path.display()
    )]
    CacheTooLarge {
        /// Which folder.
        path: PathBuf,
        /// The size that the settings give.
        size: Bytes,
        /// The bytes that are free, or the cache's already.
        room: Bytes,
    },
    /// A program could not be started, or ended before it served.
    #[error("{0}")]
    Start(String),
    /// Signals or file watches are not to be had.
    #[error("cannot set up: {0}")]
    System(String),
    /// Told to stop a second time.
    #[error("stopped at once")]
    Interrupted,
}

/// How long a start may take; a filter's compilation on a busy machine is most of it.
const START_PATIENCE: Duration = Duration::from_mins(3);
/// How long an orderly end may take.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// How often children are looked at.
const TICK: Duration = Duration::from_millis(100);
/// How often process 1 waits for the children of others.
const REAP: Duration = Duration::from_millis(500);
/// How often the machine's addresses are looked at, and files on filesystems that tell nobody of changes.
const LOOK: Duration = Duration::from_secs(30);

/// Starts everything for the accepted file, serves until told to stop, and leaves nothing behind.
pub fn run(options: &Options, loaded: Loaded) -> Result<(), RunError> {
    let located = locate(&options.overridden)?;
    let state = StateFolder::open(options.state.as_deref(), &options.file)?;
    let (sender, events) = mpsc::channel();
    forward_signals(sender.clone()).map_err(|error| RunError::System(error.to_string()))?;
    let watch = watches::are_to_be_had(1)
        .map_err(|error| error.to_string())
        .and_then(|()| FileWatch::new(sender).map_err(|error| error.to_string()))
        .map_err(RunError::System)?;
    let wanted = ports::wanted(&loaded.settings);
    refuse(ports::check_patiently(&wanted))?;
    let [dns_ready, resolver, hold, hold_pipe, dns, dialled] =
        ports::free_loopback(&wanted).map_err(|error| RunError::System(error.to_string()))?;
    let machine = RunContext {
        root: state.rendered.clone(),
        kept: state.kept.clone(),
        filters: locate::filters(&loaded.settings, &options.overridden.filters)?,
        dns_ready,
        resolver,
        near: NearSockets { hold, hold_pipe, dns, dialled },
        renewals: Some(state.rendered.join(RENEWALS)),
        access_log: options.access_log.clone(),
    };
    let generation = Generation::of(loaded, &machine)?;
    prepare_folders(&generation.settings)?;
    write_tree(&machine.root, &generation.tree, None)?;
    warn_of_few_files(&generation.settings);
    let mut run = Run {
        envoy: Envoy::new(located.envoy.clone(), &machine.root),
        dns: Service::new(dns_program(&located, &machine), machine.dns_ready),
        options: options.clone(),
        machine,
        generation,
        holders: HeldConnections::default(),
        refusal: None,
        last_refusal: None,
        applied: Applied { at: now(), changes: 0, config_sha256: String::new() },
        started: now(),
        publisher: Publisher::new(&state.path),
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

/// A run under way; what changes it stands in `apply`.
pub(super) struct Run {
    pub(super) options: Options,
    pub(super) machine: RunContext,
    pub(super) generation: Generation,
    /// Why the files as they are now are not what runs.
    pub(super) refusal: Option<String>,
    /// The last refusal, standing or not.
    pub(super) last_refusal: Option<Refusal>,
    pub(super) applied: Applied,
    started: u64,
    publisher: Publisher,
    pub(super) manager: ServiceManager,
    pub(super) envoy: Envoy,
    pub(super) dns: Service,
    /// Only a remote has any.
    holders: HeldConnections,
    events: Receiver<Event>,
    pub(super) watch: FileWatch,
    _state: StateFolder,
}

/// The configuration in force.
pub(super) struct Applied {
    /// Since when, in seconds since 1970.
    pub(super) at: u64,
    /// How many changes since the start.
    pub(super) changes: u32,
    /// Of the configuration file.
    pub(super) config_sha256: String,
}

impl Run {
    /// Starts both, one after the other; false where told to stop meanwhile.
    fn start(&mut self) -> Result<bool, RunError> {
        self.watch.follow(&self.generation.inputs);
        let failed = |name: &str, error: io::Error| RunError::Start(format!("cannot start {name}: {error}"));
        self.envoy.start(&self.generation).map_err(|error| failed("Envoy", error))?;
        if !self.wait_for("Envoy", |run| run.envoy.is_ready())? {
            return Ok(false);
        }
        self.refuse_half_started()?;
        // Second, because it steers nobody to a proxy that does not answer, and takes its time to ask again.
        self.dns.start().map_err(|error| failed("CoreDNS", error))?;
        if !self.wait_for("CoreDNS", |run| is_ready(run.machine.dns_ready))? {
            return Ok(false);
        }
        // Before the line that others wait for: what it announces can be asked at once.
        let report = self.report();
        self.publisher.publish(report);
        self.announce()?;
        self.manager.ready(&self.status_line());
        Ok(true)
    }

    /// Waits until `ready`; false where told to stop meanwhile. A child that ends now will not serve by being restarted.
    fn wait_for(&mut self, name: &str, ready: impl Fn(&Self) -> bool) -> Result<bool, RunError> {
        let deadline = Instant::now() + START_PATIENCE;
        while !ready(self) {
            match self.events.recv_timeout(TICK) {
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(false),
                // A change during the start is found by comparing, once serving.
                Ok(Event::Reload | Event::FilesChanged | Event::ReopenLogs) | Err(RecvTimeoutError::Timeout) => {}
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

    /// Envoy calls itself ready even where it refused a listener.
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

    /// The one line on stdout.
    fn announce(&self) -> Result<(), RunError> {
        let line = ready_line(&self.generation.settings);
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{line}")
            .and_then(|()| stdout.flush())
            .map_err(|error| RunError::Start(format!("cannot write to stdout: {error}")))
    }

    fn serve(&mut self) -> Result<(), RunError> {
        // Looked at once in any case: a file may have changed during the start.
        let mut settling = Debounce::default();
        settling.changed(Instant::now());
        let mut looked_at = Instant::now();
        let mut reaped_at = Instant::now();
        loop {
            match self.events.recv_timeout(TICK) {
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(Event::Reload) => {
                    say("checking the files (SIGHUP)");
                    // `systemctl reload` waits for the word that it is done, also where nothing changed.
                    self.manager.reloading();
                    settling.changed(Instant::now());
                }
                Ok(Event::FilesChanged) => settling.changed(Instant::now()),
                Ok(Event::ReopenLogs) => {
                    say("opening the access log again (SIGUSR1)");
                    self.envoy.reopen_logs();
                }
                Err(RecvTimeoutError::Timeout) => {}
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
            self.holders.tend(&self.generation.settings, self.machine.near, |when_down| {
                link_is_up(self.envoy.admin()?, when_down)
            });
            if process::id() == 1 && reaped_at.elapsed() >= REAP {
                let own: Vec<u32> = self.envoy.pids().chain(self.dns.pid()).collect();
                child::reap_orphans(&own);
                reaped_at = Instant::now();
            }
            let report = self.report();
            self.publisher.publish(report);
            let status = self.status_line();
            self.manager.alive(&status);
        }
    }

    /// One line for `systemctl status`.
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

    /// Envoy's cache keeps a note of every requested URL. Before the notes fill its heap, another Envoy takes over.
    fn exchange_full_envoy(&mut self) {
        let settings = &self.generation.settings;
        let Some(admin) = self.envoy.admin().filter(|_| matches!(settings.cache, Cache::Disk { .. })) else { return };
        if self.envoy.is_being_exchanged() {
            return;
        }
        let most = settings.limits.urls;
        if let Some(urls) = remembered_urls(admin).filter(|urls| *urls > u64::from(most)) {
            say(&format!(
                "Envoy's cache remembers {urls} different URLs (`limits.urls` {most}): another Envoy takes over, and the present one ends when its connections have"
            ));
            self.envoy.replace();
        }
    }

    /// The admin address of the present Envoy. A changed `listen.admin` comes into force with the process that has it.
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
            listen: Sockets { admin: self.admin(), ..Sockets::of(&self.generation.settings) },
            lists_names: steers(&self.generation.settings),
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
            hurried |= matches!(events.try_recv(), Ok(Event::Stop));
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
        arguments: vec!["-quiet".into(), "-conf".into(), corefile.into()],
    }
}

/// Two files a connection, one to the client and one to the origin.
fn warn_of_few_files(settings: &Settings) {
    let wanted = u64::from(settings.limits.connections) * 2;
    if let Some(most) = child::most_files().filter(|most| *most < wanted) {
        say(&format!(
            "`limits.connections` {} needs {wanted} open files, but the limit of this process is {most}; raise the limit (systemd: LimitNOFILE={wanted})",
            settings.limits.connections
        ));
    }
}

pub(super) fn refuse(occupied: Vec<PortError>) -> Result<(), RunError> {
    if occupied.is_empty() { Ok(()) } else { Err(RunError::Ports(occupied)) }
}

pub(super) fn prepare_folders(settings: &Settings) -> Result<(), RunError> {
    if let Cache::Disk { dir, size, .. } = &settings.cache {
        let error = |error| RunError::CacheFolder { path: dir.clone(), error };
        fs::create_dir_all(dir).map_err(error)?;
        // Envoy would start, and quietly keep nothing.
        tempfile::Builder::new().prefix(".longhaul-").tempfile_in(dir).map_err(error)?;
        let room = disk_space::for_cache(dir).map_err(error)?;
        if room < size.0 {
            return Err(RunError::CacheTooLarge { path: dir.clone(), size: *size, room: Bytes(room) });
        }
    }
    Ok(())
}

/// `ready http=127.0.0.1:8080 ...`: the sockets, by their keys.
fn ready_line(settings: &Settings) -> String {
    let listen = &settings.listen;
    let dns = listen.dns;
    let sockets = [
        (ports::http_key(settings).trim_start_matches("listen."), listen.http),
        ("split.listen", settings.role.dialled_in()),
        ("tls", listen.tls),
        ("dns", dns),
        ("admin", Some(listen.admin)),
        ("metrics", dns.and(listen.metrics)),
    ];
    let words = sockets.iter().filter_map(|(key, socket)| socket.map(|socket| format!(" {key}={socket}")));
    format!("ready{}", words.collect::<String>())
}
