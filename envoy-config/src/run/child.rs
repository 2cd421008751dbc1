//! One child process: started so that it cannot outlive us, watched, and stopped politely before it is stopped at all.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getppid, getrlimit, kill_process, set_parent_process_death_signal,
    setrlimit, waitpid,
};

use super::report::{ChildReport, now};

/// The hidden command that [`exec_bound_to_parent`] serves.
pub(crate) const BOUND_COMMAND: &str = "__exec-bound-to-parent";

/// The program to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// Its name in messages.
    pub(super) name: &'static str,
    pub(super) path: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

/// How often a child died that was to live, and of what last.
#[derive(Debug, Default)]
pub(super) struct Deaths {
    count: u32,
    last: Option<String>,
}

impl Deaths {
    pub(super) fn add(&mut self, how: String) {
        self.count += 1;
        self.last = Some(how);
    }
}

/// A running child.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) name: &'static str,
    child: Child,
    pub(super) started: Instant,
    /// The same by the clock on the wall, in seconds since 1970.
    started_at: u64,
}

impl Running {
    /// Starts `program`. Must be called from a thread that lives as long as this process does: the kernel ends the child
    /// with the thread that started it.
    pub(super) fn start(program: &Program) -> io::Result<Self> {
        // Through ourselves, because asking the kernel to end a child with its parent has to happen in the child.
        let child = Command::new("/proc/self/exe")
            .arg(BOUND_COMMAND)
            .arg(std::process::id().to_string())
            .arg(&program.path)
            .args(&program.arguments)
            .stdin(Stdio::null())
            // Our stdout is for one line, `ready`; CoreDNS logs to its stdout.
            .stdout(Stdio::from(io::stderr()))
            .stderr(Stdio::inherit())
            // Ctrl-C in a terminal goes to a whole group: it is ours to pass on, in order.
            .process_group(0)
            .spawn()?;
        Ok(Self { name: program.name, child, started: Instant::now(), started_at: now() })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its state for `longhaul status`; `died` counts the deaths of its predecessors.
    pub(super) fn report(this: Option<&Self>, died: &Deaths) -> ChildReport {
        ChildReport {
            pid: this.map(Self::pid),
            started: this.map(|running| running.started_at),
            restarts: died.count,
            last_end: died.last.clone(),
        }
    }

    /// How it ended, if it did.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends a signal; one that ended meanwhile does not mind.
    pub(super) fn signal(&self, signal: Signal) {
        // The child has not been waited for, so its number cannot be anybody else's yet.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Ends it at once.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks all to end and waits, at most until `deadline`, or until `hurry` says so; then ends them.
pub(super) fn stop_all(children: &mut [Running], patience: Duration, mut hurry: impl FnMut() -> bool) {
    for child in children.iter() {
        child.signal(Signal::TERM);
    }
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline && !hurry() {
        if children.iter_mut().all(|child| child.ended().is_some()) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    for child in children.iter_mut().filter_map(|child| if child.ended().is_none() { Some(child) } else { None }) {
        super::say(&format!("{} (process {}) did not end in time and was killed", child.name, child.pid()));
        child.kill();
    }
}

/// Waits for processes that became children of this one when their parents ended: process 1 of a container gets them all,
/// and they stay zombies until it does. `own` are waited for by the code that started them.
pub(super) fn reap_orphans(own: &[u32]) {
    for child in children_of_this_process().filter(|child| !own.contains(child)) {
        if let Some(pid) = i32::try_from(child).ok().and_then(Pid::from_raw) {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Each thread has a list of its own; empty where the kernel keeps none.
fn children_of_this_process() -> impl Iterator<Item = u32> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
}

/// How a child ended, in words.
pub(super) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with status {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// In the child: asks the kernel to end this process with its parent, then becomes `program`. Returns only on failure.
pub fn exec_bound_to_parent(parent: i32, program: &std::path::Path, arguments: &[OsString]) -> io::Error {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::TERM)) {
        return error.into();
    }
    // The parent may have ended before the line above: then nobody will ever send the signal.
    if getppid() != Pid::from_raw(parent) {
        return io::Error::new(io::ErrorKind::BrokenPipe, "the parent has ended");
    }
    allow_many_files();
    Command::new(program).args(arguments).exec()
}

/// A connection is an open file, two with the one to its origin; Envoy takes the limit that it is given.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Open files a child may have; None: as many as it likes.
pub(super) fn most_files() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}
