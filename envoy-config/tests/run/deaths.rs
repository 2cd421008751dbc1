//! Longhaul starts dead children again, and reports it to the operator.

use std::fs;
use std::process::Command;

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

#[test]
fn an_envoy_whose_cache_remembers_too_many_urls_is_exchanged_once_and_not_one_request_is_lost() {
    let Some(host) = Host::new() else { return };
    // At first sight, so that every URL enters the cache.
    let config = host.config().replace("size: 16mib", "size: 16mib, admit: first");
    host.write("longhaul.yaml", &(config + "limits: { urls: 100 }\ntransport: { drain_time: 1s }\n"));
    let run = host.start();
    let first = run.child_named("envoy").unwrap();
    let ask = |from: u32| (from..from + 80).filter(|n| host.get(8080, &format!("/{n}")).is_empty()).count();
    assert_eq!(ask(0), 0);
    run.signal(Signal::HUP);
    run.says("checking the files");
    assert_eq!(run.child_named("envoy"), Some(first), "80 are not too many");
    assert_eq!(ask(100), 0);
    run.signal(Signal::HUP);
    run.says("`limits.urls` 100): another Envoy takes over");
    eventually("another Envoy", || run.child_named("envoy") != Some(first));
    let second = run.child_named("envoy");
    let mut lost = 0;
    eventually("the first one has ended", || {
        lost += ask(200);
        !is_alive(first)
    });
    assert_eq!(lost, 0);
    // What the first one remembered is not held against the second.
    run.signal(Signal::HUP);
    eventually("it has looked again", || run.log().matches("checking the files").count() == 3);
    assert_eq!(ask(200), 0);
    assert_eq!(run.child_named("envoy"), second, "{}", run.log());
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
    // An orphan of the shell that becomes `longhaul`; it ends once that serves.
    let ends = host.path("ends");
    let script = format!("sh -c '(while [ ! -e {} ]; do sleep 0.1; done) &'; exec \"$@\"", ends.display());
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
    fs::write(&ends, "").unwrap();
    eventually("the orphan has ended and was waited for", || loops() < before && zombies_of(first) == 0);
    assert!(host.page_is_rewritten());
}
