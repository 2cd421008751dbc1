//! The child gives up, before it reads a byte: memory, time, files, network and nearly every system call.

use std::io;

use side_program::sandbox::{Argument, Calls, NO_CODE, Resource, keep_calls, keep_files, limit};

/// The limits of one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The address space, in bytes.
    pub memory_bytes: u64,
    /// The processor time, in seconds.
    pub cpu_s: u64,
}

/// Closes the sandbox around this process. Returns true if Landlock is a part of it: kernels before 5.13 lack it, and
/// some containers forbid it. The filter of system calls alone allows neither files nor sockets, too.
///
/// # Errors
/// If a limit or the filter cannot be set. Then no image may be read.
pub fn close(limits: Limits) -> io::Result<bool> {
    limit(&[
        (Resource::As, limits.memory_bytes),
        (Resource::Cpu, limits.cpu_s),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nproc, 0),
    ])?;
    let landlock = keep_files(None);
    keep_calls(Calls { all: &CALLS, some: &WITHOUT_CODE })?;
    Ok(landlock)
}

/// The system calls of a process that reads, computes, writes and ends.
const CALLS: [libc::c_long; 22] = [
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_restart_syscall,
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    // glibc sizes the memory of `qsort` by it.
    libc::SYS_sysinfo,
];

/// Memory is never executable.
const WITHOUT_CODE: [(libc::c_long, Argument); 2] = [(libc::SYS_mmap, NO_CODE), (libc::SYS_mprotect, NO_CODE)];
