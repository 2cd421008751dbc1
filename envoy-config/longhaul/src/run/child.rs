//! A child process that cannot outlive its parent. It is watched, and asked to end before it is killed.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use longhaul_observe::report::ChildReport;
use rustix::process::{Pid, Resource, Signal, WaitOptions, getrlimit, kill_process, kill_process_group, waitpid};

use super::bound::BOUND_COMMAND;
use super::ending::Ending;
use super::log::{self, Dialect, Level};
use super::publisher::now;

/// The program to start.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// Its name in messages.
    pub(super) name: &'static str,
    pub(super) path: PathBuf,
    /// The folder in which it runs. None: that of this process.
    pub(super) folder: Option<PathBuf>,
    /// The form of its log lines.
    pub(super) dialect: Dialect,
    pub(super) arguments: Vec<OsString>,
    /// Variables of its environment, beside those of this process.
    pub(super) environment: Vec<(&'static str, OsString)>,
}

/// The number of unexpected deaths of a child, and the cause of the last one.
#[derive(Debug, Default)]
pub(super) struct Deaths {
    count: u32,
    last: Option<String>,
    /// The times of the last few.
    times: VecDeque<Instant>,
}

impl Deaths {
    /// The number of deaths whose times are kept.
    const KEPT: usize = 8;

    pub(super) fn add(&mut self, how: String) {
        self.count += 1;
        self.last = Some(how);
        self.times.truncate(Self::KEPT - 1);
        self.times.push_front(Instant::now());
    }

    /// Returns the number of deaths.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Returns the number of deaths within `time`, up to a handful.
    pub(super) fn within(&self, time: Duration) -> usize {
        self.times.iter().filter(|at| at.elapsed() <= time).count()
    }
}

/// A running child.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) name: &'static str,
    child: Child,
    pub(super) started: Instant,
    /// The start by the wall clock, in seconds since 1970.
    started_at: u64,
}

impl Running {
    /// Starts `program`. The calling thread must live as long as this process: the kernel kills the child when the
    /// thread that started it ends.
    pub(super) fn start(program: &Program) -> io::Result<Self> {
        // A pipe of its own, which a thread reads: a child never waits for this program's stderr.
        let (output, input) = io::pipe()?;
        log::follow(output, program.dialect.clone())?;
        // The child must itself request to be killed with its parent, so this program starts itself first.
        let mut command = Command::new("/proc/self/exe");
        if let Some(folder) = &program.folder {
            command.current_dir(folder);
        }
        let child = command
            .arg(BOUND_COMMAND)
            .arg(std::process::id().to_string())
            .arg(&program.path)
            .args(&program.arguments)
            .envs(program.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            // stdout of this process holds only the line `ready`, and CoreDNS logs to its stdout.
            .stdout(input.try_clone()?)
            .stderr(input)
            // Ctrl-C in a terminal signals the whole process group. This process forwards it to its children in order.
            .process_group(0)
            .spawn()?;
        Ok(Self { name: program.name, child, started: Instant::now(), started_at: now() })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the state of the child for `longhaul status`. `died` counts the deaths of its predecessors.
    pub(super) fn report(this: Option<&Self>, died: &Deaths) -> ChildReport {
        ChildReport {
            pid: this.map(Self::pid),
            started: this.map(|running| running.started_at),
            restarts: died.count,
            last_end: died.last.clone(),
        }
    }

    /// Returns how it ended, or None while it runs.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends a signal. Does nothing if the child has ended.
    pub(super) fn signal(&self, signal: Signal) {
        // The child has not been waited for, so no other process can have its number.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills it and what it has started.
    pub(super) fn kill_group(&mut self) {
        // It is the first of its group, and has not been waited for.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        Self::kill(self);
    }

    /// Kills it.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ending for Running {
    fn ask_to_end(&mut self) {
        self.signal(Signal::TERM);
    }

    fn has_ended(&mut self) -> bool {
        self.ended().is_some()
    }

    fn kill(&mut self) {
        super::say(
            Level::Warning,
            &format!("{} (process {}) did not end in time and was killed", self.name, self.pid()),
        );
        Self::kill(self);
    }
}

/// Reaps processes whose parents ended before them. Process 1 of a container becomes their parent, and they stay
/// zombies until it waits for them. The code that started the processes in `own` waits for those.
pub(super) fn reap_orphans(own: &[u32]) {
    for child in children_of_this_process().filter(|child| !own.contains(child)) {
        if let Some(pid) = i32::try_from(child).ok().and_then(Pid::from_raw) {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Lists the children of every thread. The list is empty if the kernel does not publish it.
fn children_of_this_process() -> impl Iterator<Item = u32> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
}

/// Describes how a child ended.
pub(super) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with status {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// Returns the number of files that a child may open. None means no limit.
pub(super) fn most_files() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}
