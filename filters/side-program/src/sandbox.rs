//! The rights that a process keeps once it has opened what it needs. All others are gone for good.
//!
//! This is the mechanism. Each program has a table of what it keeps. Rights are those of a thread, and threads that it starts
//! inherit them. So a program gives them up before it starts a second thread.

use std::collections::BTreeMap;
use std::ffi::c_long;
use std::io;
use std::os::fd::BorrowedFd;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, RestrictionStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, make_bitflags,
};
use rustix::process::{Rlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

pub use rustix::process::Resource;

/// The rights below a folder: to read, write, make, rename and remove files, and to make folders. Nothing there is executed,
/// and no device, socket or link is made.
const BELOW: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    ReadFile | WriteFile | Truncate | ReadDir | MakeReg | MakeDir | RemoveFile | Refer
});

/// A condition for an argument of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// The place of the argument, from 0 on.
    pub at: u8,
    /// The bits that count. The kernel reads 32 bits of an `int`.
    pub mask: u64,
    /// The value of these bits.
    pub is: u64,
}

/// `mmap` and `mprotect` without `PROT_EXEC`: memory is never executable.
pub const NO_CODE: Argument = Argument { at: 2, mask: 4, is: 0 };

/// The system calls that a process keeps. Any other call fails with `EPERM`. It does not end the process, because C libraries
/// differ in what they try first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calls<'a> {
    /// Calls with any arguments.
    pub all: &'a [c_long],
    /// Calls with some arguments. A call that several rows name needs one of them.
    pub some: &'a [(c_long, Argument)],
}

/// Sets limits of resources, which nothing raises again.
///
/// # Errors
/// A limit cannot be set.
pub fn limit(rows: &[(Resource, u64)]) -> io::Result<()> {
    for (resource, most) in rows {
        setrlimit(*resource, Rlimit { current: Some(*most), maximum: Some(*most) })
            .map_err(|error| io::Error::other(format!("a resource limit cannot be set: {error}")))?;
    }
    Ok(())
}

/// Keeps the files below a folder, or none. Gives up TCP ports, Unix sockets without a path, and signals to other processes,
/// as far as the kernel knows them. Returns false if Landlock is missing: kernels before 5.13 lack it, and some containers
/// forbid it. With a folder, it needs Linux 5.19: before, it forbids each rename from one folder into another.
pub fn keep_files(below: Option<BorrowedFd<'_>>) -> bool {
    restrict(below).is_ok_and(|status| status.ruleset != RulesetStatus::NotEnforced)
}

fn restrict(below: Option<BorrowedFd<'_>>) -> Result<RestrictionStatus, RulesetError> {
    // Where Landlock does not know renames between folders, it forbids them. Then a soft requirement leaves all of it out.
    let renames = if below.is_some() { CompatLevel::SoftRequirement } else { CompatLevel::BestEffort };
    let ruleset = Ruleset::default()
        .set_compatibility(renames)
        .handle_access(AccessFs::Refer)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5))?
        .handle_access(AccessNet::from_all(ABI::V5))?
        .scope(Scope::from_all(ABI::V6))?
        .create()?;
    match below {
        Some(folder) => ruleset.add_rule(PathBeneath::new(folder, BELOW))?.restrict_self(),
        None => ruleset.restrict_self(),
    }
}

/// Keeps some system calls.
///
/// # Errors
/// The kernel or a container refuses the filter, or the filter does not know this processor.
pub fn keep_calls(calls: Calls<'_>) -> io::Result<()> {
    let refused = SeccompAction::Errno(u32::try_from(libc::EPERM).unwrap_or(1));
    filter(calls, refused, SeccompAction::Allow)
        .map_err(|error| io::Error::other(format!("the filter of system calls cannot be set: {error}")))
}

/// Makes system calls fail with `ENOSYS`, as on a kernel that lacks them. C libraries then use older calls. A later
/// [`keep_calls`] must keep them, because its `EPERM` would win.
///
/// # Errors
/// As for [`keep_calls`].
pub fn lack_calls(calls: &[c_long]) -> io::Result<()> {
    let absent = SeccompAction::Errno(u32::try_from(libc::ENOSYS).unwrap_or(38));
    filter(Calls { all: calls, some: &[] }, SeccompAction::Allow, absent)
        .map_err(|error| io::Error::other(format!("the filter of system calls cannot be set: {error}")))
}

fn filter(calls: Calls<'_>, other: SeccompAction, named: SeccompAction) -> Result<(), seccompiler::Error> {
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> = BTreeMap::new();
    for (call, Argument { at, mask, is }) in calls.some {
        let test = SeccompCondition::new(*at, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(*mask), *is)?;
        rules.entry(*call).or_default().push(SeccompRule::new(vec![test])?);
    }
    // A call without rules has any arguments.
    rules.extend(calls.all.iter().map(|call| (*call, Vec::new())));
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let program: BpfProgram = SeccompFilter::new(rules, other, named, arch)?.try_into()?;
    seccompiler::apply_filter(&program)
}
