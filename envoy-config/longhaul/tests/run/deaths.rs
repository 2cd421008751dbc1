//! Longhaul starts dead children again, and reports it to the operator.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use rustix::fs::{XattrFlags, setxattr};
use rustix::process::Signal;

use crate::support::{Host, eventually, is_alive, signal_process, skip};

#[test]
fn a_killed_envoy_is_started_again_and_serves_the_same() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    let envoy = run.child_named("envoy").unwrap();
    signal_process(envoy, Signal::KILL);
    run.says(&format!("Envoy (process {envoy}) was killed by signal 9; starting it again in 100 ms"));
    eventually("the page is served again", || host.page_is_rewritten());
    run.says("Envoy responds again");
    assert_ne!(run.child_named("envoy"), Some(envoy));
}

#[test]
fn a_killed_coredns_is_started_again_and_answers() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    let coredns = run.child_named("coredns").unwrap();
    signal_process(coredns, Signal::KILL);
    run.says(&format!("CoreDNS (process {coredns}) was killed by signal 9; starting it again in 100 ms"));
    run.says("CoreDNS responds again");
    eventually("a query is answered", || host.asks("www.example.test").is_some());
}

#[test]
fn a_child_that_keeps_dying_is_started_ever_more_slowly() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    for wait in [100, 200, 400] {
        let mut coredns = None;
        eventually("CoreDNS runs", || {
            coredns = run.child_named("coredns");
            coredns.is_some()
        });
        signal_process(coredns.unwrap(), Signal::KILL);
        run.says(&format!("starting it again in {wait} ms"));
    }
    assert!(host.page_is_rewritten(), "Envoy has nothing to do with it");
}

/// The attribute of a file with `CAP_NET_BIND_SERVICE` (`struct vfs_cap_data` of linux/capability.h, version 2).
const BIND_SERVICE: [u8; 20] = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Returns the process that ends `child` with its parent.
fn companion_of(child: u32) -> Option<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_companion = |pid: &u32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains("__end-with") && line.ends_with(&format!("\0{child}\0"))
    };
    pids.into_iter().find(is_companion)
}

#[test]
fn a_child_ends_with_its_parent_also_if_its_file_has_capabilities() {
    if !rustix::process::geteuid().is_root() {
        skip("needs root for a capability on a file");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let (program, pids) = (folder.path().join("sleep"), folder.path().join("pids"));
    fs::copy("/bin/sleep", &program).unwrap();
    setxattr(&program, "security.capability", &BIND_SERVICE, XattrFlags::empty()).unwrap();
    fs::write(&pids, "").unwrap();
    fs::set_permissions(&pids, Permissions::from_mode(0o666)).unwrap();
    // Root keeps the signal, so the parent is another user. That one may still read this test's files.
    let script = "\"$0\" __exec-bound-to-parent $$ \"$1\" 1000 & echo $! >>\"$2\"; wait";
    let start = || {
        let mut command = Command::new("setpriv");
        let own = ["--reuid", "65534", "--inh-caps=+dac_override", "--ambient-caps=+dac_override", "sh", "-c"];
        command.args(own).arg(script).arg(env!("CARGO_BIN_EXE_longhaul")).arg(&program).arg(&pids);
        command.spawn().unwrap()
    };
    let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    // Both cases: the parent ends first, and the child ends first. Nothing is left of either.
    for parent_ends in [true, false] {
        fs::write(&pids, "").unwrap();
        let mut parent = start();
        let child = || fs::read_to_string(&pids).unwrap().lines().last().and_then(|line| line.parse::<u32>().ok());
        let mut started = None;
        eventually("the program runs", || {
            started = child().filter(|pid| name(*pid) == "sleep\n");
            started.is_some()
        });
        let child = started.unwrap();
        let mut companion = None;
        eventually("its companion runs", || {
            companion = companion_of(child);
            companion.is_some()
        });
        let companion = companion.unwrap();
        signal_process(if parent_ends { parent.id() } else { child }, Signal::KILL);
        parent.wait().unwrap();
        eventually("the child has ended", || !is_alive(child));
        eventually("its companion has ended", || !is_alive(companion));
    }
}

/// Zombies whose parent is `parent`.
fn zombies_of(parent: u32) -> usize {
    let stats = fs::read_dir("/proc").unwrap().flatten();
    let stats = stats.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    // The third and fourth field of proc_pid_stat(5).
    stats
        .filter(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(&format!("Z {parent} "))))
        .count()
}

#[test]
fn as_process_1_it_leaves_no_zombies_of_processes_whose_parents_have_ended() {
    let Some(host) = Host::new() else { return };
    if !rustix::process::geteuid().is_root() {
        skip("needs root for a process namespace");
        return;
    }
    // Twenty orphans of the shell that becomes `longhaul`. They end once that serves.
    let ends = host.path("ends");
    let orphan = format!("sh -c '(while [ ! -e {} ]; do sleep 0.1; done) &'", ends.display());
    let script = format!("for i in $(seq 20); do {orphan}; done; exec \"$@\"");
    let run = host.start_by(|command| {
        let mut inside = Command::new("unshare");
        inside.args(["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", &script, "sh"]);
        inside.arg(command.get_program()).args(command.get_args());
        inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        inside
    });
    let first = run.children()[0];
    let loops = || fs::read_to_string(format!("/proc/{first}/task/{first}/children")).unwrap().split(' ').count();
    let before = loops();
    assert!(before > 20, "{before} children");
    fs::write(&ends, "").unwrap();
    eventually("the orphans have ended and were waited for", || loops() <= before - 20 && zombies_of(first) == 0);
    assert!(host.page_is_rewritten());
}
