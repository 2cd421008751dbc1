//! Children that die are started again, and the operator is told.

use rustix::process::Signal;

use crate::support::{Host, eventually, signal_process};

#[test]
fn a_killed_envoy_is_started_again_and_serves_the_same() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    let envoy = run.child_named("envoy").unwrap();
    signal_process(envoy, Signal::KILL);
    run.says(&format!("Envoy (process {envoy}) was killed by signal 9; starting it again in 100 ms"));
    eventually("the page is served again", || host.page_is_rewritten());
    run.says("Envoy answers again");
    assert_ne!(run.child_named("envoy"), Some(envoy));
}

#[test]
fn a_killed_coredns_is_started_again_and_answers() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    let coredns = run.child_named("coredns").unwrap();
    signal_process(coredns, Signal::KILL);
    run.says(&format!("CoreDNS (process {coredns}) was killed by signal 9; starting it again in 100 ms"));
    run.says("CoreDNS answers again");
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
