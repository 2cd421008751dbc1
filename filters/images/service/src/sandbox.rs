//! The child gives up, before it reads a byte: memory, time, files, network and nearly every system call.

use std::collections::BTreeMap;

use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// The limits of one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The address space, in bytes.
    pub memory_bytes: u64,
    /// The processor time, in seconds.
    pub cpu_s: u64,
}

/// The reason why a sandbox could not be closed.
#[derive(Debug, thiserror::Error)]
pub enum Open {
    /// A limit of resources.
    #[error("a resource limit cannot be set: {0}")]
    Limit(#[from] rustix::io::Errno),
    /// The filter of system calls.
    #[error("the filter of system calls cannot be set: {0}")]
    Calls(#[from] seccompiler::Error),
    /// The filter does not know this processor.
    #[error("the filter of system calls cannot be built: {0}")]
    Filter(#[from] seccompiler::BackendError),
}

/// Closes the sandbox around this process. Returns true if Landlock is a part of it: kernels before 5.13 lack it, and
/// some containers forbid it. The filter of system calls alone allows neither files nor sockets, too.
///
/// # Errors
/// If a limit or the filter cannot be set. Then no image may be read.
pub fn close(limits: Limits) -> Result<bool, Open> {
    let rows = [
        (Resource::As, limits.memory_bytes),
        (Resource::Cpu, limits.cpu_s),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nproc, 0),
    ];
    for (resource, most) in rows {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    let landlock = without_files();
    let program: BpfProgram = filter()?.try_into()?;
    seccompiler::apply_filter(&program)?;
    Ok(landlock)
}

/// No file, and no TCP port.
fn without_files() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let closed = ruleset
        .handle_access(AccessFs::from_all(ABI::V5))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(ABI::V5)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self);
    closed.is_ok_and(|status| status.ruleset != RulesetStatus::NotEnforced)
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

/// These calls, and memory that is never executable. Any other call fails. It does not end the process, because C
/// libraries differ in what they try first.
fn filter() -> Result<SeccompFilter, seccompiler::BackendError> {
    let no_code = || {
        let executable = u64::try_from(libc::PROT_EXEC).unwrap_or(4);
        let test = SeccompCmpOp::MaskedEq(executable);
        SeccompCondition::new(2, SeccompCmpArgLen::Qword, test, 0).and_then(|test| SeccompRule::new(vec![test]))
    };
    let mut rules: BTreeMap<libc::c_long, Vec<SeccompRule>> =
        CALLS.into_iter().map(|call| (call, Vec::new())).collect();
    rules.insert(libc::SYS_mmap, vec![no_code()?]);
    rules.insert(libc::SYS_mprotect, vec![no_code()?]);
    let refused = SeccompAction::Errno(u32::try_from(libc::EPERM).unwrap_or(1));
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, refused, SeccompAction::Allow, arch)
}
