//! The program gives up, before it reads a request: files outside its folder, the network, other programs and most system
//! calls. A response that takes it over finds stored responses and Unix sockets.

use std::os::fd::BorrowedFd;

use libc::c_long;
use side_program::sandbox::{Argument, Calls, NO_CODE, Resource, keep_calls, keep_files, lack_calls, limit};

/// Closes the sandbox around this thread and those that it starts. They keep the files below `folder`. Returns a line for each
/// layer that this system does not have. The cache serves without it, because the other layers and the guard remain.
pub fn close(folder: BorrowedFd<'_>) -> Vec<String> {
    let mut missing = Vec::new();
    if let Err(error) = limit(&[(Resource::Core, 0)]) {
        missing.push(error.to_string());
    }
    if !keep_files(Some(folder)) {
        missing.push("this system has no Landlock of Linux 5.19 or later: all files of the user stay open".to_owned());
    }
    let all = [CALLS, OLD_CALLS].concat();
    let some: Vec<_> = SOME_CALLS.into_iter().chain([(libc::SYS_tgkill, of_self())]).collect();
    // The flags of `clone3` lie in memory, where no filter sees them. Those of `clone` are an argument.
    let filtered = lack_calls(&[libc::SYS_clone3]).and_then(|()| keep_calls(Calls { all: &all, some: &some }));
    if let Err(error) = filtered {
        missing.push(format!("{error}: all system calls stay open"));
    }
    missing
}

/// The numbers of system calls.
macro_rules! numbers {
    ($($call:ident)*) => { &[$(libc::$call),*] };
}

/// The system calls of a program that serves files to Unix sockets from several threads. Libraries differ in what they call,
/// so some harmless ones have no use today.
const CALLS: &[c_long] = numbers! {
    // Files: below the folder, by Landlock. Nothing changes an owner, a mode or a time.
    SYS_openat SYS_close SYS_fstat SYS_newfstatat SYS_statx SYS_getdents64 SYS_mkdirat SYS_unlinkat SYS_renameat2
    SYS_lseek SYS_read SYS_readv SYS_pread64 SYS_preadv SYS_preadv2 SYS_write SYS_writev SYS_pwrite64 SYS_pwritev
    SYS_pwritev2 SYS_ftruncate SYS_fallocate SYS_fadvise64 SYS_fsync SYS_fdatasync SYS_flock SYS_fcntl
    // Connections. The kind of a socket is below.
    SYS_connect SYS_accept SYS_accept4 SYS_shutdown SYS_getsockname SYS_getpeername SYS_getsockopt SYS_setsockopt
    SYS_sendto SYS_sendmsg SYS_recvfrom SYS_recvmsg
    // Events.
    SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_ppoll SYS_eventfd2 SYS_pipe2 SYS_dup
    // Memory. `mmap` and `mprotect` are below.
    SYS_munmap SYS_mremap SYS_madvise SYS_brk
    // Threads. `clone` is below, and `clone3` is lacking.
    SYS_clone3 SYS_exit SYS_exit_group SYS_set_robust_list SYS_set_tid_address SYS_rseq SYS_futex SYS_membarrier
    SYS_sched_yield SYS_sched_getaffinity SYS_gettid SYS_getpid
    // Signals to this program.
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_sigaltstack SYS_restart_syscall
    // The clock, chance, and facts about this process.
    SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep SYS_nanosleep SYS_gettimeofday SYS_getrandom SYS_getuid
    SYS_geteuid SYS_getgid SYS_getegid SYS_sysinfo SYS_uname
};

/// Older calls that libraries prefer on this processor. They give no further rights.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[c_long] = numbers! {
    SYS_open SYS_stat SYS_lstat SYS_mkdir SYS_unlink SYS_rename SYS_renameat SYS_epoll_wait SYS_poll SYS_pipe SYS_dup2 SYS_time
};
#[cfg(target_arch = "aarch64")]
const OLD_CALLS: &[c_long] = numbers! { SYS_renameat };
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const OLD_CALLS: &[c_long] = &[];

/// The bits of an argument that is an `int`.
const INT: u64 = 0xffff_ffff;
/// `CLONE_THREAD`, and the flags of `clone` that make a namespace.
const THREAD: u64 = 0x0001_0000;
const NAMESPACES: u64 = 0x7e02_0000;

/// System calls with some arguments.
const SOME_CALLS: [(c_long, Argument); 10] = [
    (libc::SYS_mmap, NO_CODE),
    (libc::SYS_mprotect, NO_CODE),
    // A thread, and neither a process nor a namespace.
    (libc::SYS_clone, Argument { at: 0, mask: THREAD | NAMESPACES, is: THREAD }),
    // AF_UNIX.
    (libc::SYS_socket, Argument { at: 0, mask: INT, is: 1 }),
    (libc::SYS_socketpair, Argument { at: 0, mask: INT, is: 1 }),
    // FIONBIO and FIOCLEX.
    (libc::SYS_ioctl, Argument { at: 1, mask: INT, is: 0x5421 }),
    (libc::SYS_ioctl, Argument { at: 1, mask: INT, is: 0x5451 }),
    // PR_SET_NAME and PR_SET_VMA: names of threads and of memory.
    (libc::SYS_prctl, Argument { at: 0, mask: INT, is: 15 }),
    (libc::SYS_prctl, Argument { at: 0, mask: INT, is: 0x5356_4d41 }),
    // Limits are read, and not set.
    (libc::SYS_prlimit64, Argument { at: 2, mask: u64::MAX, is: 0 }),
];

/// A signal to this process itself, as `abort` sends one.
fn of_self() -> Argument {
    Argument { at: 0, mask: INT, is: u64::from(std::process::id()) }
}
