//! The end of a child with its parent. Each function here runs in a process of its own, as a hidden command.
//!
//! The kernel can signal a process when its parent ends (`PR_SET_PDEATHSIG`). It forgets that when the process becomes a
//! program with capabilities on its file, as `setcap` gives them, or with a set-user-ID bit (execve(2)). Such a program
//! gets a companion, which waits for the end of either process and signals the program.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::getxattr;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getpid, getppid, getrlimit, pidfd_open, pidfd_send_signal,
    set_parent_process_death_signal, setrlimit,
};

/// The hidden command that [`exec_bound_to_parent`] serves.
pub(crate) const BOUND_COMMAND: &str = "__exec-bound-to-parent";
/// The hidden command that [`end_with`] serves.
pub(crate) const COMPANION_COMMAND: &str = "__end-with";
/// The signal to a process whose parent has ended.
const PARENT_ENDED: Signal = Signal::TERM;
/// The mode bits of set-user-ID and set-group-ID.
const SET_ID: u32 = 0o6000;

/// Runs in the child. Arranges the end of this process with its parent, then becomes `program`. Returns only on failure.
pub(crate) fn exec_bound_to_parent(parent: i32, program: &Path, arguments: &[OsString]) -> io::Error {
    if let Err(error) = set_parent_process_death_signal(Some(PARENT_ENDED)) {
        return error.into();
    }
    // If the parent ended before the call above, no signal will come.
    if getppid() != Pid::from_raw(parent) {
        return io::Error::new(io::ErrorKind::BrokenPipe, "the parent has ended");
    }
    if loses_its_signal(program)
        && let Err(error) = start_companion(parent)
    {
        return io::Error::new(error.kind(), format!("cannot start the process that ends it with its parent: {error}"));
    }
    allow_many_files();
    Command::new(program).args(arguments).exec()
}

/// Returns true if the kernel forgets the signal when this process becomes `program`.
fn loses_its_signal(program: &Path) -> bool {
    let has_capabilities = getxattr(program, "security.capability", &mut [0_u8; 64]).is_ok();
    has_capabilities || program.metadata().is_ok_and(|metadata| metadata.mode() & SET_ID != 0)
}

/// Starts the companion of this process. It outlives the exec, and `program` never learns of it.
fn start_companion(parent: i32) -> io::Result<()> {
    Command::new("/proc/self/exe")
        .arg(COMPANION_COMMAND)
        .arg(parent.to_string())
        .arg(getpid().to_string())
        // Its end must not be awaited by a reader of the child's log.
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map(drop)
}

/// Runs as the companion of process `child`. Waits until `child` or its parent ends, and signals `child` in the second
/// case.
///
/// # Errors
/// The kernel is older than 5.3, or one of the processes ended before this one could watch it.
pub(crate) fn end_with(parent: i32, child: i32) -> io::Result<()> {
    let open = |pid: i32| {
        let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
        Ok::<_, io::Error>(pidfd_open(pid, PidfdFlags::empty())?)
    };
    let watched = open(child)?;
    let Ok(of_parent) = open(parent) else { return Ok(pidfd_send_signal(&watched, PARENT_ENDED)?) };
    // The child started this process. If the parent has ended, its number may belong to another process by now.
    let is_orphan = procfs::process::Process::new(child).and_then(|it| it.stat()).is_ok_and(|it| it.ppid != parent);
    if is_orphan {
        return Ok(pidfd_send_signal(&watched, PARENT_ENDED)?);
    }
    let mut ends = [PollFd::new(&watched, PollFlags::IN), PollFd::new(&of_parent, PollFlags::IN)];
    while let Err(error) = poll(&mut ends, None) {
        if error != rustix::io::Errno::INTR {
            return Err(error.into());
        }
    }
    let [child_ended, _] = ends.map(|end| !end.revents().is_empty());
    if child_ended {
        return Ok(());
    }
    Ok(pidfd_send_signal(&watched, PARENT_ENDED)?)
}

/// Raises the limit of open files. A proxied connection takes two files, and Envoy does not raise the limit itself.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
