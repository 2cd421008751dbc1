//! Envoy as a child: its arguments, its restarts, and the exchange of one Envoy for another without closing a socket.
//!
//! Nearly every change reaches Envoy through watched files. What is left (`bootstrap.yaml`, the drain time) needs
//! another process: Envoy's own hot restart lets a new one take the listening sockets over while the old one finishes
//! what it has begun.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::child::{self, Deaths, Program, Running};
use super::generation::Generation;
use super::probe::is_ready;
use super::report::ChildReport;
use super::say;
use super::service::BackOff;
use super::watches;
use crate::config::Role;
use crate::derive::Derived;
use crate::render::RenderedTree;

/// The old process gets this much longer than its connections to end.
const PARENT_MARGIN: Duration = Duration::from_secs(5);
/// An Envoy that has to end before the next begins is given this long.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// Without notices that a used feature is young or renamed: they are for who writes the templates, not for who runs them.
const LOG_LEVELS: &str = "misc:error";
/// Where the ground dials also without a line for each attempt and request while no tunnel stands, which we say once.
const TUNNEL_LOG_LEVELS: &str = "misc:error,filter:critical,io:critical,upstream:error";
/// Read once, at start.
pub(super) const BOOTSTRAP: &str = "bootstrap.yaml";

/// Envoy, now and while being exchanged.
#[derive(Debug)]
pub(super) struct Envoy {
    path: PathBuf,
    root: PathBuf,
    drain_time: Duration,
    /// Which shared memory its generations meet in; known once the first has started.
    base_id: Option<u32>,
    /// Counts generations that took over from each other.
    epoch: u32,
    running: Option<Running>,
    /// Those that were taken over from and still finish their connections.
    draining: Vec<Running>,
    /// What it was started as.
    role: Option<Role>,
    admin: Option<SocketAddr>,
    back_off: BackOff,
    restart_at: Option<Instant>,
    recovering: bool,
    deaths: Deaths,
}

/// Whether only another process can take the change: of the bootstrap, or of the command line.
pub(super) fn must_restart(old: &Generation, new: &Generation) -> bool {
    old.tree.get(BOOTSTRAP) != new.tree.get(BOOTSTRAP) || old.derived.drain_time.value != new.derived.drain_time.value
}

/// Whether Envoy watches a file of the tree.
pub(super) fn is_watched(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "yaml") && path != BOOTSTRAP
}

/// Whether the present process must end before the next begins. A ground's tunnels belong to one process, and no others
/// come while it has them.
fn must_end_first(old: &Role, new: &Role) -> bool {
    let is_dialled = |role: &Role| matches!(role, Role::Remote(remote) if remote.ground.dials());
    is_dialled(old) || is_dialled(new) || old.ground_dials() != new.ground_dials()
}

/// How many files of the tree Envoy watches.
fn watched(tree: &RenderedTree) -> usize {
    tree.files().keys().filter(|path| is_watched(path)).count()
}

impl Envoy {
    pub(super) fn new(path: PathBuf, root: &Path, derived: &Derived) -> Self {
        Self {
            path,
            root: root.to_owned(),
            drain_time: derived.drain_time.value,
            base_id: None,
            epoch: 0,
            running: None,
            draining: Vec::new(),
            role: None,
            admin: None,
            back_off: BackOff::new(),
            restart_at: None,
            recovering: false,
            deaths: Deaths::default(),
        }
    }

    /// Starts the first generation, or a new first one after a death.
    pub(super) fn start(&mut self, present: &Generation) -> io::Result<()> {
        watches::are_to_be_had(watched(&present.tree))?;
        self.forget_base_id();
        self.epoch = 0;
        self.admin = Some(present.settings.listen.admin);
        self.restart_at = None;
        let arguments = ["--use-dynamic-base-id".into(), "--base-id-path".into(), self.base_id_path().into()];
        self.running = Some(Running::start(&self.program(&present.settings.role, arguments))?);
        self.role = Some(present.settings.role.clone());
        Ok(())
    }

    /// Lets Envoy itself judge a bootstrap before a process depends on it; Err: what it says.
    pub(super) fn judge(&self, bootstrap: &str) -> Result<(), String> {
        let judged = (|| {
            let mut file = tempfile::Builder::new().prefix("longhaul-").suffix(".yaml").tempfile()?;
            file.write_all(bootstrap.as_bytes())?;
            Command::new(&self.path)
                .args(["--mode", "validate", "-l", "error", "-c"])
                .arg(file.path())
                .stdin(Stdio::null())
                .output()
        })();
        match judged {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(format!("it could not be asked: {error}")),
        }
    }

    /// Starts a generation that takes over from the present one; without one, the next start is the new generation.
    pub(super) fn replace(&mut self, next: &Generation) {
        self.drain_time = next.derived.drain_time.value;
        let role = &next.settings.role;
        if self.role.as_ref().is_some_and(|old| must_end_first(old, role)) {
            self.start_anew(next);
            return;
        }
        let Some(base_id) = self.read_base_id() else { return };
        let Some(old) = self.running.take() else { return };
        let epoch = self.epoch + 1;
        let arguments =
            ["--base-id".into(), base_id.to_string().into(), "--restart-epoch".into(), epoch.to_string().into()];
        // The old one keeps its own.
        let started =
            watches::are_to_be_had(watched(&next.tree)).and_then(|()| Running::start(&self.program(role, arguments)));
        match started {
            Ok(new) => {
                self.epoch = epoch;
                self.role = Some(role.clone());
                self.running = Some(new);
                self.draining.push(old);
            }
            Err(error) => {
                say(&format!(
                    "cannot start another Envoy: {error}; the present one keeps running with its old bootstrap"
                ));
                self.running = Some(old);
            }
        }
    }

    /// Ends what runs, then starts the next.
    fn start_anew(&mut self, next: &Generation) {
        let mut old = self.take_all();
        child::stop_all(&mut old, END_PATIENCE, || false);
        if let Err(error) = self.start(next) {
            say(&format!("cannot start another Envoy: {error}; trying again"));
            self.restart_at = Some(Instant::now() + self.back_off.after(Duration::ZERO));
        }
    }

    fn program(&self, role: &Role, more: impl IntoIterator<Item = OsString>) -> Program {
        let drain = self.drain_time.as_secs().max(1);
        let tunnels = role.ground_dials();
        let mut arguments: Vec<OsString> = vec![
            "-c".into(),
            self.root.join(BOOTSTRAP).into(),
            "--log-level".into(),
            "warning".into(),
            "--component-log-level".into(),
            if tunnels { TUNNEL_LOG_LEVELS } else { LOG_LEVELS }.into(),
            "--drain-time-s".into(),
            drain.to_string().into(),
            "--parent-shutdown-time-s".into(),
            (drain + PARENT_MARGIN.as_secs()).to_string().into(),
        ];
        if tunnels {
            // A tunnel belongs to a worker, and its requests to the worker they came to: with one they always meet.
            arguments.extend(["--concurrency".into(), "1".into()]);
        }
        arguments.extend(more);
        Program { name: "Envoy", path: self.path.clone(), arguments }
    }

    /// Whether an earlier process still finishes what it has begun.
    pub(super) fn is_being_exchanged(&self) -> bool {
        !self.draining.is_empty()
    }

    pub(super) fn is_ready(&self) -> bool {
        self.admin.is_some_and(is_ready)
    }

    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.running.as_mut().and_then(Running::ended)
    }

    /// To be called often: buries old generations, starts again after a death, says when it answers.
    pub(super) fn tend(&mut self, present: &Generation) {
        self.admin = Some(present.settings.listen.admin);
        self.draining.retain_mut(|old| old.ended().is_none());
        if let Some(status) = self.ended() {
            self.died(status);
        }
        if self.restart_at.is_some_and(|at| Instant::now() >= at)
            && let Err(error) = self.start(present)
        {
            let wait = self.back_off.after(Duration::ZERO);
            say(&format!("cannot start Envoy: {error}; trying again in {} ms", wait.as_millis()));
            self.restart_at = Some(Instant::now() + wait);
        }
        if self.recovering && self.running.is_some() && self.is_ready() {
            self.recovering = false;
            say("Envoy answers again");
        }
    }

    fn died(&mut self, status: ExitStatus) {
        let Some(running) = self.running.take() else { return };
        // A generation that was being taken over from may still hold the sockets the next one needs.
        child::stop_all(&mut self.draining, Duration::ZERO, || true);
        self.draining.clear();
        let wait = self.back_off.after(running.started.elapsed());
        say(&format!(
            "Envoy (process {}) {}; starting it again in {} ms",
            running.pid(),
            child::describe(status),
            wait.as_millis()
        ));
        self.deaths.add(child::describe(status));
        self.restart_at = Some(Instant::now() + wait);
        self.recovering = true;
    }

    /// Envoy opens its access logs again on SIGUSR1; those that finish their connections log too.
    pub(super) fn reopen_logs(&self) {
        for process in self.running.iter().chain(&self.draining) {
            process.signal(Signal::USR1);
        }
    }

    /// What `longhaul status` is told.
    pub(super) fn report(&self) -> ChildReport {
        Running::report(self.running.as_ref(), &self.deaths)
    }

    /// Gives all processes away, to be stopped.
    pub(super) fn take_all(&mut self) -> Vec<Running> {
        self.restart_at = None;
        self.running.take().into_iter().chain(self.draining.drain(..)).collect()
    }

    fn base_id_path(&self) -> PathBuf {
        self.root.join(".envoy-base-id")
    }

    fn read_base_id(&mut self) -> Option<u32> {
        if self.base_id.is_none() {
            self.base_id = fs::read_to_string(self.base_id_path()).ok()?.trim().parse().ok();
        }
        self.base_id
    }

    /// Envoy leaves its shared memory behind, whatever way it ends.
    fn forget_base_id(&mut self) {
        if let Some(base_id) = self.read_base_id() {
            // Envoy multiplies it by ten, to tell generations apart.
            let _ = fs::remove_file(format!("/dev/shm/envoy_shared_memory_{}", u64::from(base_id) * 10));
        }
        self.base_id = None;
        let _ = fs::remove_file(self.base_id_path());
    }

    /// After the last process has ended.
    pub(super) fn clean_up(&mut self) {
        self.forget_base_id();
    }
}
