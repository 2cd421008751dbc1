//! Envoy as a child: its arguments, its restarts, and hot restart.
//!
//! Nearly every change reaches Envoy through watched files. The rest (`bootstrap.yaml`, the drain time) needs another
//! process. Hot restart lets a new process take over the listening sockets while the old one finishes its connections.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use longhaul_derive::{Derived, MultipathUse};
use longhaul_observe::Endpoint;
use longhaul_observe::report::ChildReport;
use longhaul_render::RenderedTree;
use rustix::process::Signal;

use super::child::{self, Deaths, Program, Running};
use super::generation::{Generation, RunContext};
use super::known_addresses;
use super::lineage::{Id, Lineage, Loss, ProcessStep};
use super::locate::multipath;
use super::log::{Dialect, ENVOY_FORMAT, Heard, Level};
use super::private::{HOT_RESTART, PrivateFolder, SOCKET_MODE};
use super::probe::{accepts, live_epoch};
use super::say;
use super::shared_memory;
use super::takeover::{self, Processes};
use super::watches;

/// The time between the drain time and the end of the old process.
const PARENT_MARGIN: Duration = Duration::from_secs(5);
/// The longest time that a parent takes to close its sockets once its child is ready.
const HANDOVER_PATIENCE: Duration = Duration::from_secs(2);
const HANDOVER_TICK: Duration = Duration::from_millis(100);
/// So many deaths within this time end the native engine until the next start.
const NATIVE_DEATHS: usize = 3;
const NATIVE_PROBATION: Duration = Duration::from_mins(10);
/// Hides notices about new or renamed features. They concern authors of templates, not operators.
const LOG_LEVELS: &str = "misc:error";
/// The file that Envoy reads only once, at its start.
pub(super) const BOOTSTRAP: &str = "bootstrap.yaml";

/// Envoy, also during a hot restart.
#[derive(Debug)]
pub(super) struct Envoy {
    path: PathBuf,
    root: PathBuf,
    /// The folder where Envoy saves the addresses of origins.
    kept: PathBuf,
    private: PrivateFolder,
    admin: Endpoint,
    /// The base ID of the shared memory of all generations. None until the first has started.
    base_id: Option<u32>,
    lineage: Lineage,
    processes: BTreeMap<Id, Process>,
    recovering: bool,
    deaths: Deaths,
    /// The lines of every process.
    heard: Heard,
    /// The library of Multipath TCP, if it was found.
    multipath: Option<PathBuf>,
}

/// A process, and what it was started with.
#[derive(Debug)]
struct Process {
    running: Running,
    epoch: u32,
    drain_time: Duration,
}

/// The variable with settings of the C library.
const TUNABLES: &str = "GLIBC_TUNABLES";
/// Leaves restartable sequences (rseq(2)) to Envoy's allocator, which then has a cache for each processor. Otherwise it
/// has one for each thread, and 18 MiB stay in the caches of threads that compiled filters.
const NO_RSEQ: &str = "glibc.pthread.rseq=0";

/// Returns the settings of the C library for Envoy. Those of this process stay.
fn tunables(own: Option<OsString>) -> OsString {
    let own = own.unwrap_or_default();
    if own.to_string_lossy().contains("glibc.pthread.rseq=") {
        return own;
    }
    let separator = if own.is_empty() { "" } else { ":" };
    [own, separator.into(), NO_RSEQ.into()].into_iter().collect()
}

/// The variable with the libraries that the loader puts before all others.
const PRELOAD: &str = "LD_PRELOAD";

/// Returns the libraries to preload: the one of Multipath TCP, and those of this process.
fn preloaded(library: &Path, own: Option<OsString>) -> OsString {
    match own.filter(|own| !own.is_empty()) {
        Some(own) => [library.as_os_str(), ":".as_ref(), &own].into_iter().collect(),
        None => library.into(),
    }
}

fn uses_multipath(derived: &Derived) -> bool {
    !matches!(derived.multipath, MultipathUse::Off(_))
}

/// Returns true if only another process can apply the change: one of the bootstrap, or of the command line.
pub(super) fn must_restart(old: &Generation, new: &Generation) -> bool {
    let of_command_line = |generation: &Generation| {
        (
            generation.derived.drain_time.value,
            generation.derived.capacity.workers.value,
            uses_multipath(&generation.derived),
        )
    };
    old.tree.get(BOOTSTRAP) != new.tree.get(BOOTSTRAP) || of_command_line(old) != of_command_line(new)
}

/// Returns true if Envoy watches a file of the tree.
pub(super) fn is_watched(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "yaml") && path != BOOTSTRAP
}

/// Counts the files of the tree that Envoy watches.
pub(super) fn watched(tree: &RenderedTree) -> usize {
    tree.files.keys().filter(|path| is_watched(path)).count()
}

impl Envoy {
    pub(super) fn new(path: PathBuf, machine: &RunContext, private: PrivateFolder, heard: Heard) -> Self {
        Self {
            path,
            root: machine.root.clone(),
            kept: machine.kept.clone(),
            admin: Endpoint::Unix(private.admin()),
            private,
            base_id: None,
            lineage: Lineage::new(),
            processes: BTreeMap::new(),
            recovering: false,
            deaths: Deaths::default(),
            heard,
            multipath: multipath(),
        }
    }

    /// Starts the first process.
    pub(super) fn start(&mut self, present: &Generation) -> io::Result<()> {
        let now = Instant::now();
        self.lineage.begin(now);
        match self.lineage.next(now, present.derived.capacity.start_patience) {
            Some(ProcessStep::Begin(id)) => self.begin(id, present),
            _ => Ok(()),
        }
    }

    /// Lets Envoy validate a bootstrap before a process depends on it. The error is Envoy's message.
    pub(super) fn judge(&self, bootstrap: &str) -> Result<(), String> {
        let judged = (|| {
            let mut file = tempfile::Builder::new().prefix("longhaul-").suffix(".yaml").tempfile()?;
            file.write_all(bootstrap.as_bytes())?;
            Command::new(&self.path)
                .args(["--mode", "validate", "-l", "error", "--log-format", "%v", "-c"])
                .arg(file.path())
                .stdin(Stdio::null())
                .output()
        })();
        match judged {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) if output.stderr.is_empty() => Err(child::describe(output.status)),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(format!("it could not be asked: {error}")),
        }
    }

    /// Requests that another process take over. It starts once that cuts no connection before its drain time.
    pub(super) fn replace(&mut self) {
        self.lineage.want();
    }

    fn program(&self, present: &Generation, more: impl IntoIterator<Item = OsString>) -> Program {
        let drain = drain_time(present).as_secs();
        let mut arguments: Vec<OsString> = vec![
            "-c".into(),
            self.root.join(BOOTSTRAP).into(),
            "--log-level".into(),
            "warning".into(),
            "--component-log-level".into(),
            LOG_LEVELS.into(),
            // `longhaul log --follow` shows a request within a second. Envoy's default is 10 seconds.
            "--file-flush-interval-msec".into(),
            "1000".into(),
            "--concurrency".into(),
            present.derived.capacity.workers.value.to_string().into(),
            "--drain-time-s".into(),
            drain.to_string().into(),
            "--parent-shutdown-time-s".into(),
            (drain + PARENT_MARGIN.as_secs()).to_string().into(),
            // By default these sockets are abstract: every user of the machine takes over the listeners, or ends Envoy.
            "--socket-path".into(),
            HOT_RESTART.into(),
            "--socket-mode".into(),
            SOCKET_MODE.into(),
        ];
        arguments.extend(ENVOY_FORMAT.map(OsString::from));
        arguments.extend(more);
        let mut environment = vec![(TUNABLES, tunables(std::env::var_os(TUNABLES)))];
        if let Some(library) = self.multipath.as_ref().filter(|_| uses_multipath(&present.derived)) {
            environment.push((PRELOAD, preloaded(library, std::env::var_os(PRELOAD))));
        }
        Program {
            name: "Envoy",
            path: self.path.clone(),
            folder: Some(self.private.path().to_owned()),
            dialect: Dialect::Envoy(self.heard.clone()),
            arguments,
            environment,
        }
    }

    /// Returns true if a takeover is under way or an earlier process still drains.
    pub(super) fn is_being_exchanged(&self) -> bool {
        self.lineage.is_being_exchanged()
    }

    /// Begins no takeover while `held` ([`Lineage::hold`]).
    pub(super) fn hold(&mut self, held: bool) {
        self.lineage.hold(held);
    }

    /// Returns true if a change waits for a takeover that failed too often. The next change tries again.
    pub(super) fn has_given_up(&self) -> bool {
        self.lineage.has_given_up()
    }

    /// Returns true while a change must wait ([`Lineage::defers_changes`]).
    pub(super) fn defers_changes(&self) -> bool {
        self.lineage.defers_changes()
    }

    /// Returns true if a new process takes over and is not ready yet. Until then no process can report that it accepts
    /// a change.
    pub(super) fn is_taking_over(&self) -> bool {
        self.lineage.is_taking_over()
    }

    /// Returns the admin interface, which has the same place in every process.
    pub(super) fn admin_interface(&self) -> &Endpoint {
        &self.admin
    }

    /// Returns the admin interface while there is a process that serves.
    pub(super) fn admin(&self) -> Option<&Endpoint> {
        self.present().map(|_| &self.admin)
    }

    /// Returns true if the process serves. During a takeover its parent responds at the same socket, so the epoch
    /// decides.
    fn is_live(&self, process: &Process) -> bool {
        live_epoch(&self.admin) == Some(process.epoch)
    }

    fn present(&self) -> Option<&Process> {
        self.processes.get(&self.lineage.present()?)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.present().is_some_and(|process| self.is_live(process))
    }

    /// Returns how the present process ended. None while it runs, and if there is none.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.processes.get_mut(&self.lineage.present()?).and_then(|process| process.running.ended())
    }

    /// Returns true if there is a present process and it has not ended.
    pub(super) fn is_running(&mut self) -> bool {
        self.lineage.present().is_some() && self.ended().is_none()
    }

    /// Notices processes that are ready or have ended, and takes the next steps. Call it often.
    pub(super) fn tend(&mut self, present: &Generation) {
        takeover::tend(self, present, present.derived.capacity.start_patience);
    }

    fn start_process(
        &mut self,
        id: Id,
        epoch: u32,
        present: &Generation,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> io::Result<()> {
        // A draining process keeps its own watches.
        watches::are_to_be_had(watched(&present.tree))?;
        if let Err(error) = known_addresses::mend(&self.kept) {
            say(Level::Warning, &format!("the saved addresses in {} stay unread: {error}", self.kept.display()));
        }
        let running = Running::start(&self.program(present, arguments))?;
        self.processes.insert(id, Process { running, epoch, drain_time: drain_time(present) });
        Ok(())
    }

    /// Makes every Envoy open its access log again, by SIGUSR1. Draining processes log too.
    pub(super) fn reopen_logs(&self) {
        for process in self.processes.values() {
            process.running.signal(Signal::USR1);
        }
    }

    /// Returns the numbers of all processes that are not known to have ended.
    pub(super) fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.values().map(|process| process.running.pid())
    }

    /// Returns the present process.
    pub(super) fn pid(&self) -> Option<u32> {
        self.present().map(|process| process.running.pid())
    }

    /// Returns the number of deaths of present processes.
    pub(super) fn deaths(&self) -> u32 {
        self.deaths.count()
    }

    /// Returns true if Envoy has died so often of late that native filters are to blame, if it runs them.
    pub(super) fn dies_often(&self) -> bool {
        self.deaths.within(NATIVE_PROBATION) >= NATIVE_DEATHS
    }

    /// Returns the state of the present process for `longhaul status`.
    pub(super) fn report(&self) -> ChildReport {
        Running::report(self.present().map(|process| &process.running), &self.deaths)
    }

    /// Gives away all processes, so that the caller can stop them.
    pub(super) fn take_all(&mut self) -> Vec<Running> {
        std::mem::take(&mut self.processes).into_values().map(|process| process.running).collect()
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

    /// Removes the shared memory and the sockets, which Envoy always leaves behind.
    fn forget_base_id(&mut self) {
        if let Some(base_id) = self.read_base_id() {
            let _ = fs::remove_file(shared_memory::path(base_id));
        }
        self.base_id = None;
        let _ = fs::remove_file(self.base_id_path());
        self.private.forget_envoy();
    }

    /// Cleans up after the last process has ended.
    pub(super) fn clean_up(&mut self) {
        self.forget_base_id();
    }
}

impl Processes for Envoy {
    type Configuration = Generation;

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn lineage(&mut self) -> &mut Lineage {
        &mut self.lineage
    }

    fn those_that_ended(&mut self) -> Vec<(Id, String)> {
        let ended = |(id, process): (&Id, &mut Process)| Some((*id, child::describe(process.running.ended()?)));
        self.processes.iter_mut().filter_map(ended).collect()
    }

    fn serves(&mut self, id: Id, epoch: u32) -> bool {
        let process = self.processes.get(&id).filter(|process| process.epoch == epoch);
        process.is_some_and(|process| self.is_live(process))
    }

    fn took_over(&mut self, present: &Generation) -> bool {
        if self.read_base_id().is_some_and(shared_memory::says_starting) {
            return false;
        }
        let socket = present.settings.listen.http.first();
        // The parent closes its sockets a moment after the takeover.
        let deadline = Instant::now() + HANDOVER_PATIENCE;
        while accepts(socket) {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(HANDOVER_TICK);
        }
        true
    }

    fn says_starting(&mut self) -> bool {
        self.read_base_id().is_none_or(shared_memory::says_starting)
    }

    fn drain_of(&self, id: Id) -> Duration {
        self.processes.get(&id).map_or(Duration::ZERO, |process| process.drain_time) + PARENT_MARGIN
    }

    fn responds(&mut self) {
        if std::mem::take(&mut self.recovering) {
            say(Level::Info, "Envoy responds again");
        }
    }

    fn begin(&mut self, id: Id, present: &Generation) -> io::Result<()> {
        self.forget_base_id();
        let arguments = ["--use-dynamic-base-id".into(), "--base-id-path".into(), self.base_id_path().into()];
        self.start_process(id, 0, present, arguments)
    }

    fn succeed(&mut self, id: Id, epoch: u32, present: &Generation) -> io::Result<()> {
        let base_id = self.read_base_id().ok_or_else(|| io::Error::other("its base id is not known"))?;
        shared_memory::forget_dead_successor(base_id)?;
        let arguments =
            ["--base-id".into(), base_id.to_string().into(), "--restart-epoch".into(), epoch.to_string().into()];
        self.start_process(id, epoch, present, arguments)
    }

    fn terminate(&mut self, id: Id) {
        if let Some(process) = self.processes.get(&id) {
            process.running.signal(Signal::TERM);
        }
    }

    fn kill(&mut self, id: Id) {
        if let Some(process) = self.processes.get_mut(&id) {
            process.running.kill();
        }
    }

    fn forget(&mut self, id: Id) -> Option<u32> {
        self.processes.remove(&id).map(|process| process.running.pid())
    }

    fn report_end(&mut self, pid: u32, how: &str, loss: Loss) {
        match loss {
            Loss::Serving(wait) => {
                say(
                    Level::Error,
                    &format!("Envoy (process {pid}) {how}; starting it again in {} ms", wait.as_millis()),
                );
                self.deaths.add(how.to_owned());
                self.recovering = true;
            }
            Loss::Successor(again) => say(
                Level::Warning,
                &format!(
                    "another Envoy (process {pid}) {how} before it was ready; the present one keeps running with its old \
                 bootstrap{}",
                    tried(again)
                ),
            ),
            Loss::Expected => {}
        }
    }

    fn report_no_start(&mut self, error: &io::Error, loss: Loss) {
        match loss {
            Loss::Serving(wait) => {
                say(Level::Error, &format!("cannot start Envoy: {error}; trying again in {} ms", wait.as_millis()));
            }
            Loss::Successor(again) => {
                say(
                    Level::Error,
                    &format!("cannot start another Envoy: {error}; the present one keeps running{}", tried(again)),
                );
            }
            Loss::Expected => {}
        }
    }
}

/// Returns the end of a message about a takeover that failed.
fn tried(again: Option<Duration>) -> String {
    again.map_or_else(
        || "; the next change tries again".to_owned(),
        |wait| format!("; trying again in {} ms", wait.as_millis()),
    )
}

/// Returns the time, in whole seconds, in which a replaced process may finish its connections.
fn drain_time(present: &Generation) -> Duration {
    Duration::from_secs(present.derived.drain_time.value.as_secs().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_c_library_stay_beside_the_one_for_the_allocator() {
        for (own, expected) in [
            (None, "glibc.pthread.rseq=0"),
            (Some(""), "glibc.pthread.rseq=0"),
            (Some("glibc.malloc.arena_max=1"), "glibc.malloc.arena_max=1:glibc.pthread.rseq=0"),
            (Some("glibc.pthread.rseq=1"), "glibc.pthread.rseq=1"),
        ] {
            assert_eq!(tunables(own.map(OsString::from)), expected, "{own:?}");
        }
    }
}
