//! The run itself: start, wait, serve, apply changes, restart what died, stop.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use super::child::{self, stop_all};
use super::envoy::{self, Envoy};
use super::events::{Event, FileWatch, forward_signals};
use super::generation::{COREFILE, GenerateError, Generation, Machine};
use super::locate::{LocateError, Located, Overridden, locate};
use super::ports::{self, PortError, Wanted};
use super::probe::{XdsCounters, is_ready};
use super::say;
use super::service::Service;
use super::state::{StateError, StateFolder};
use super::tree::{WriteError, Written, write_tree};
use crate::config::{Cache, LoadError, Loaded, Settings, load};
use crate::render::AccessLog;

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
const START_PATIENCE: Duration = Duration::from_mins(1);
/// How long an orderly end may take.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// Files that change together are looked at together.
const QUIET: Duration = Duration::from_millis(200);
/// How often children are looked at.
const TICK: Duration = Duration::from_millis(100);
/// How long Envoy has to take changed files.
const APPLY_PATIENCE: Duration = Duration::from_secs(10);

/// Starts everything for the accepted file, serves until told to stop, and leaves nothing behind.
pub fn run(options: &Options, loaded: Loaded) -> Result<(), RunError> {
    let located = locate(&options.overridden)?;
    let state = StateFolder::open(options.state.as_deref(), &options.file)?;
    let (sender, events) = mpsc::channel();
    forward_signals(sender.clone()).map_err(|error| RunError::System(error.to_string()))?;
    let watch = FileWatch::new(sender).map_err(|error| RunError::System(error.to_string()))?;
    refuse_occupied(&ports::wanted(&loaded.settings))?;
    let machine = Machine {
        root: state.rendered.clone(),
        kept: state.kept.clone(),
        url_rewrite: Some(located.url_rewrite.clone()),
        dns_ready: ports::free_loopback().map_err(|error| RunError::System(error.to_string()))?,
        access_log: options.access_log.clone(),
    };
    let generation = Generation::of(loaded.settings, &machine)?;
    prepare_folders(&generation.settings)?;
    write_tree(&machine.root, &generation.tree, None)?;
    let mut run = Run {
        envoy: Envoy::new(located.envoy.clone(), &machine.root, &generation.derived),
        dns: Service::new(dns_program(&located, &machine), Some(machine.dns_ready)),
        options: options.clone(),
        machine,
        generation,
        refusal: None,
        events,
        watch,
        _state: state,
    };
    let outcome = run.start().and_then(|started| if started { run.serve() } else { Ok(()) });
    let stopped = run.stop();
    outcome.and(stopped)
}

struct Run {
    options: Options,
    machine: Machine,
    generation: Generation,
    /// Why the files as they are now are not what runs.
    refusal: Option<String>,
    envoy: Envoy,
    dns: Service,
    events: Receiver<Event>,
    watch: FileWatch,
    _state: StateFolder,
}

impl Run {
    /// Starts both, one after the other; false where told to stop meanwhile.
    fn start(&mut self) -> Result<bool, RunError> {
        self.watch.follow(&self.generation.inputs);
        let failed = |name: &str, error: io::Error| RunError::Start(format!("cannot start {name}: {error}"));
        self.envoy.start(self.generation.settings.listen.admin).map_err(|error| failed("Envoy", error))?;
        if !self.wait_for("Envoy", |run| run.envoy.is_ready())? {
            return Ok(false);
        }
        self.refuse_half_started()?;
        // Second, because it steers nobody to a proxy that does not answer, and takes its time to ask again.
        if self.serves_dns() {
            self.dns.start().map_err(|error| failed("CoreDNS", error))?;
            if !self.wait_for("CoreDNS", |run| is_ready(run.machine.dns_ready))? {
                return Ok(false);
            }
        }
        self.announce()?;
        Ok(true)
    }

    /// Waits until `ready`; false where told to stop meanwhile. A child that ends now will not serve by being restarted.
    fn wait_for(&mut self, name: &str, ready: impl Fn(&Self) -> bool) -> Result<bool, RunError> {
        let deadline = Instant::now() + START_PATIENCE;
        while !ready(self) {
            match self.events.recv_timeout(TICK) {
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(false),
                // A change during the start is found by comparing, once serving.
                Ok(Event::Reload | Event::FilesChanged) | Err(RecvTimeoutError::Timeout) => {}
            }
            for (name, ended) in [("Envoy", self.envoy.ended()), ("CoreDNS", self.dns.ended())] {
                if let Some(status) = ended {
                    let how = child::describe(status);
                    return Err(RunError::Start(format!("{name} {how} before it served; its own messages are above")));
                }
            }
            if Instant::now() > deadline {
                let patience = START_PATIENCE.as_secs();
                return Err(RunError::Start(format!(
                    "{name} did not answer within {patience} s; its own messages are above"
                )));
            }
        }
        Ok(true)
    }

    fn serves_dns(&self) -> bool {
        self.generation.tree.get(COREFILE).is_some()
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
        let mut changed_at = Some(Instant::now());
        loop {
            match self.events.recv_timeout(TICK) {
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(Event::Reload) => {
                    say("told to look at the files (SIGHUP)");
                    self.apply_changes();
                    changed_at = None;
                }
                Ok(Event::FilesChanged) => changed_at = Some(Instant::now()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if changed_at.is_some_and(|at| at.elapsed() >= QUIET) {
                changed_at = None;
                self.apply_changes();
            }
            self.envoy.tend(self.generation.settings.listen.admin);
            if self.serves_dns() {
                self.dns.tend();
            }
        }
    }

    /// Looks at the files; applies what is new and right, reports what is not, and otherwise changes nothing.
    fn apply_changes(&mut self) {
        let now = self.generation.inputs.again();
        let changed: Vec<String> =
            now.changed_since(&self.generation.inputs).iter().map(|path| path.display().to_string()).collect();
        // What was refused for want of a file may be right once the file is there, though none of ours changed.
        if changed.is_empty() && self.refusal.is_none() {
            return;
        }
        self.generation.inputs = now;
        let changed = if changed.is_empty() { "a file".to_owned() } else { changed.join(", ") };
        match self.next_generation().and_then(|next| self.apply(next)) {
            Ok(what) => {
                self.refusal = None;
                say(&format!("{changed} changed: {what}"));
            }
            Err(why) => {
                if self.refusal.as_ref() != Some(&why) {
                    say(&format!(
                        "{changed} changed, and was refused:\n{why}\nthe previous configuration keeps running"
                    ));
                }
                self.refusal = Some(why);
            }
        }
        self.watch.follow(&self.generation.inputs);
    }

    fn next_generation(&self) -> Result<Generation, String> {
        let styled = io::stderr().is_terminal();
        let loaded = load(&self.options.file).map_err(|error| match error {
            LoadError::Refused(report) => report.render(styled).trim_end().to_owned(),
            error @ LoadError::Unreadable { .. } => error.to_string(),
        })?;
        if !loaded.report.problems.is_empty() {
            eprint!("{}", loaded.report.render(styled));
        }
        let next = Generation::of(loaded.settings, &self.machine).map_err(|error| error.to_string())?;
        let ours = ports::wanted(&self.generation.settings);
        let new: Vec<Wanted> =
            ports::wanted(&next.settings).into_iter().filter(|wanted| !is_ours(wanted, &ours)).collect();
        refuse_occupied(&new).map_err(|error| error.to_string())?;
        prepare_folders(&next.settings).map_err(|error| error.to_string())?;
        Ok(next)
    }

    /// Puts the files of `next` in place and sees to it that both children took them; puts the old ones back where not.
    fn apply(&mut self, next: Generation) -> Result<String, String> {
        let restart = envoy::must_restart(&self.generation, &next);
        if restart {
            self.envoy
                .judge(next.tree.get(envoy::BOOTSTRAP).unwrap_or_default())
                .map_err(|why| format!("Envoy refuses it: {why}"))?;
        }
        let admin = self.generation.settings.listen.admin;
        let before = XdsCounters::read(admin).unwrap_or_default();
        let (root, old) = (&self.machine.root, &self.generation.tree);
        let written = write_tree(root, &next.tree, Some(old)).map_err(|error| error.to_string())?;
        if let Err(refused) = wait_until_taken(admin, &before, &written) {
            let back = write_tree(root, old, Some(&next.tree)).err();
            let note =
                back.map(|error| format!("; and the old files could not be put back: {error}")).unwrap_or_default();
            return Err(format!("Envoy refuses it ({refused}); its own message is above{note}"));
        }
        self.tell_dns(&next, &written);
        self.generation = next;
        if restart {
            self.envoy.replace(&self.generation.derived);
        }
        Ok(match (written.changed.as_slice(), restart) {
            ([], false) => "nothing of it concerns a running part".to_owned(),
            (changed, false) => format!("applied ({})", changed.join(", ")),
            (changed, true) => {
                let changed = changed.join(", ");
                format!(
                    "applied ({changed}): another Envoy takes over, and the present one ends when its connections have"
                )
            }
        })
    }

    fn tell_dns(&mut self, next: &Generation, written: &Written) {
        let had = self.serves_dns();
        let has = next.tree.get(COREFILE).is_some();
        match (had, has) {
            (true, true) if written.changed.iter().any(|path| path == COREFILE) => self.dns.reload(),
            (true, false) => self.dns.stop(),
            (false, true) => {
                if let Err(error) = self.dns.start() {
                    say(&format!("cannot start CoreDNS: {error}"));
                }
            }
            _ => {}
        }
    }

    fn stop(&mut self) -> Result<(), RunError> {
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

/// Waits until Envoy has read what was written; Err: what it refused.
fn wait_until_taken(admin: SocketAddr, before: &XdsCounters, written: &Written) -> Result<(), String> {
    let expected = written.changed.iter().filter(|path| envoy::is_watched(path)).count();
    let expected = u64::try_from(expected).unwrap_or(u64::MAX);
    let deadline = Instant::now() + APPLY_PATIENCE;
    while expected > 0 && Instant::now() < deadline {
        thread::sleep(TICK);
        let Some(now) = XdsCounters::read(admin) else { continue };
        let refused = now.refused_since(before);
        if !refused.is_empty() {
            return Err(refused.join(", "));
        }
        if now.settled_since(before) >= expected {
            break;
        }
    }
    Ok(())
}

fn dns_program(located: &Located, machine: &Machine) -> child::Program {
    let corefile = machine.root.join(COREFILE);
    child::Program {
        name: "CoreDNS",
        path: located.coredns.clone(),
        arguments: vec!["-quiet".into(), "-conf".into(), corefile.into()],
    }
}

fn refuse_occupied(wanted: &[Wanted]) -> Result<(), RunError> {
    let errors = ports::check(wanted);
    if errors.is_empty() { Ok(()) } else { Err(RunError::Ports(errors)) }
}

/// A socket that a running child of ours has: another key may take it over, and a wider address may replace a narrow one.
fn is_ours(wanted: &Wanted, ours: &[Wanted]) -> bool {
    ours.iter().any(|have| have.transport == wanted.transport && have.socket.port() == wanted.socket.port())
}

fn prepare_folders(settings: &Settings) -> Result<(), RunError> {
    if let Cache::Disk { dir, .. } = &settings.cache {
        let error = |error| RunError::CacheFolder { path: dir.clone(), error };
        fs::create_dir_all(dir).map_err(error)?;
        // Envoy would start, and quietly keep nothing.
        tempfile::Builder::new().prefix(".longhaul-").tempfile_in(dir).map_err(error)?;
    }
    Ok(())
}

/// `ready http=127.0.0.1:8080 ...`: the sockets, by their keys.
fn ready_line(settings: &Settings) -> String {
    let listen = &settings.listen;
    let dns = listen.dns;
    let sockets = [
        ("http", Some(listen.http)),
        ("tls", listen.tls),
        ("dns", dns),
        ("admin", Some(listen.admin)),
        ("metrics", dns.and(listen.metrics)),
    ];
    let words = sockets.iter().filter_map(|(key, socket)| socket.map(|socket| format!(" {key}={socket}")));
    format!("ready{}", words.collect::<String>())
}
