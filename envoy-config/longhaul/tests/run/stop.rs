//! Stopping: every way of it leaves nothing behind.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{Host, eventually, is_alive, signal_process};

#[test]
fn ctrl_c_ends_both_children_frees_the_ports_and_leaves_no_shared_memory() {
    let Some(host) = Host::new() else { return };
    let mut run = host.start();
    let children = run.children();
    assert!(children.len() >= 2, "Envoy, CoreDNS, and longhaul-objects where it was built");
    let memory = host.shared_memory().unwrap();
    run.signal(Signal::INT);
    assert_eq!(run.wait().code(), Some(0));
    for child in children {
        assert!(!is_alive(child));
    }
    for port in [8080, 1053, 9153, 9900] {
        assert!(TcpListener::bind(host.socket(port)).is_ok(), "{port}");
    }
    assert!(!memory.exists());
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_a_child_that_hangs() {
    let Some(host) = Host::new() else { return };
    let mut run = host.start();
    let children = run.children();
    signal_process(run.child_named("envoy").unwrap(), Signal::STOP);
    let start = Instant::now();
    run.signal(Signal::INT);
    run.says("SIGTERM");
    run.signal(Signal::INT);
    assert_eq!(run.wait().code(), Some(130));
    // After five seconds it would have been killed in any case.
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(!children.iter().any(|child| is_alive(*child)));
}

#[test]
fn a_second_signal_ends_a_drain_although_a_child_hangs() {
    let Some(host) = Host::new() else { return };
    let mut run = host.start();
    let children = run.children();
    signal_process(run.child_named("envoy").unwrap(), Signal::STOP);
    run.signal(Signal::TERM);
    run.says("draining");
    let start = Instant::now();
    run.signal(Signal::INT);
    assert_eq!(run.wait().code(), Some(130));
    // A drain may take 30 seconds, and the end of a child 5 more.
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(!children.iter().any(|child| is_alive(*child)));
}

#[test]
fn a_child_that_hangs_is_killed_when_its_time_is_over() {
    let Some(host) = Host::new() else { return };
    host.write("longhaul.yaml", &(host.config() + "drain: { time: 1s }\n"));
    let mut run = host.start();
    let envoy = run.child_named("envoy").unwrap();
    signal_process(envoy, Signal::STOP);
    run.signal(Signal::TERM);
    assert_eq!(run.wait().code(), Some(0));
    assert!(!is_alive(envoy));
    assert!(run.log().contains("did not end in time and was killed"), "{}", run.log());
}

#[test]
fn children_do_not_outlive_a_longhaul_that_was_killed_and_the_next_one_cleans_up_after_it() {
    let Some(host) = Host::new() else { return };
    let mut run = host.start();
    let children = run.children();
    let memory = host.shared_memory().unwrap();
    let _left = Orphans(&children);
    run.signal(Signal::KILL);
    run.wait();
    eventually("both children end", || !children.iter().any(|child| is_alive(*child)));
    let _next = host.start();
    assert!(!memory.exists());
    assert!(host.page_is_rewritten());
}

/// Ends the processes that a failed assertion would leave running.
struct Orphans<'a>(&'a [u32]);

impl Drop for Orphans<'_> {
    fn drop(&mut self) {
        for pid in self.0.iter().filter(|pid| is_alive(**pid)) {
            signal_process(*pid, Signal::KILL);
        }
    }
}
