//! Changes while Longhaul runs: correct ones are applied, and wrong ones change nothing.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::process::Signal;

use crate::support::{Host, eventually, is_alive, signal_process, skip};

#[test]
fn a_changed_rewrite_level_takes_effect_and_back_again_without_a_new_process() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    let envoy = run.child_named("envoy");
    assert!(host.page_is_rewritten());
    host.change("level: safe", "level: off");
    eventually("the page is left alone", || !host.page_is_rewritten());
    host.change("level: off", "level: safe");
    eventually("the page is rewritten", || host.page_is_rewritten());
    assert_eq!(run.child_named("envoy"), envoy);
}

#[test]
fn a_refused_change_says_why_with_its_place_and_what_runs_goes_on() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    host.change("level: safe", "level: sfae");
    run.says("longhaul.yaml:7:19");
    run.says("the previous configuration keeps running");
    assert!(host.page_is_rewritten());
    let rendered = std::fs::read_to_string(host.path("state/rendered/ecds/url-rewrite.yaml")).unwrap();
    assert!(rendered.contains(r#"\"level\":\"safe\""#), "{rendered}");
    // And the next right one is applied.
    host.change("level: sfae", "level: off");
    eventually("the page is left alone", || !host.page_is_rewritten());
}

#[test]
fn a_change_to_a_socket_that_somebody_has_is_refused_with_the_key() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    let taken = TcpListener::bind(host.socket(8090)).unwrap();
    host.change(":8080", ":8090");
    run.says("set by `listen.http`, is in use by ");
    assert!(host.page_is_rewritten());
    drop(taken);
}

#[test]
fn a_changed_listener_address_is_served_by_the_same_process() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    let envoy = run.child_named("envoy");
    host.change(":8080", ":8090");
    eventually("the new port serves", || host.page(8090).contains("plane.jpg"));
    assert_eq!(run.child_named("envoy"), envoy);
}

#[test]
fn a_changed_limit_gets_a_new_envoy_and_not_one_request_is_lost() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    let old = run.child_named("envoy").unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let client = || {
            let mut pages = 0;
            while !stop.load(Ordering::Relaxed) {
                assert!(host.page_is_rewritten(), "a request was lost after {pages}");
                pages += 1;
            }
            pages
        };
        let clients = [scope.spawn(client), scope.spawn(client)];
        let _stopped_when_left = StopOnDrop(&stop);
        host.write("longhaul.yaml", &(host.config() + "limits: { connections: 0 }\n"));
        // Refused, and nothing of it may disturb the clients either.
        run.says("bad value for `limits.connections`");
        host.change("connections: 0", "connections: 700");
        eventually("another Envoy serves", || host.metrics().contains("envoy_server_hot_restart_generation{} 2\n"));
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            assert!(client.join().unwrap() > 10);
        }
    });
    assert_ne!(run.child_named("envoy"), Some(old));
    assert!(is_alive(old), "the old one still has its drain time");
    assert!(host.page_is_rewritten());
}

#[test]
fn two_edits_of_the_limits_within_a_second_lose_no_request_and_the_second_comes_into_force() {
    let Some(host) = Host::new() else { return };
    host.write("longhaul.yaml", &(host.config() + "limits: { connections: 700 }\ntransport: { drain_time: 1s }\n"));
    let run = host.start();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut pages = 0;
            while !stop.load(Ordering::Relaxed) {
                assert!(host.page_is_rewritten(), "a request was lost after {pages}");
                pages += 1;
            }
            pages
        });
        let _stopped_when_left = StopOnDrop(&stop);
        host.change("connections: 700", "connections: 701");
        run.says("another Envoy takes over, and the present one");
        host.change("connections: 701", "connections: 702");
        let limit = || host.admin("/config_dump").contains("\"max_active_downstream_connections\": \"702\"");
        eventually("the second edit is in force", limit);
        stop.store(true, Ordering::Relaxed);
        assert!(client.join().unwrap() > 10);
    });
    assert!(!run.log().contains("starting it again"), "{}", run.log());
}

#[test]
fn an_envoy_that_dies_while_it_takes_over_leaves_the_present_one_serving_and_is_tried_again() {
    let Some(host) = Host::new() else { return };
    host.write("longhaul.yaml", &(host.config() + "limits: { connections: 700 }\n"));
    let run = host.start();
    let first = run.child_named("envoy").unwrap();
    host.change("connections: 700", "connections: 701");
    // Before that an Envoy judges the file.
    run.says("another Envoy takes over");
    let mut second = None;
    eventually("a second Envoy starts", || {
        second = run.child_named("envoy").filter(|pid| *pid != first);
        second.is_some()
    });
    signal_process(second.unwrap(), Signal::KILL);
    run.says("before it was ready; the present one keeps running");
    assert!(is_alive(first));
    assert!(host.page_is_rewritten());
    eventually("a third Envoy starts", || run.child_named("envoy").is_some_and(|pid| pid != first));
    let third = run.child_named("envoy").unwrap();
    eventually("it serves", || host.admin("/server_info").contains("\"LIVE\""));
    assert_ne!(Some(third), second);
    assert!(host.page_is_rewritten());
    assert!(!run.log().contains("starting it again"), "{}", run.log());
}

/// Ends the clients after a failed assertion, too.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_bad_line_in_a_list_is_reported_at_its_place_in_the_list() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    host.write("domains.txt", "example.test\nhttp://wrong.example/\n");
    run.says("domains.txt:2:1");
    host.write("domains.txt", "example.test\nright.example\n");
    run.says("domains.txt changed: CoreDNS reads changed lists within ");
}

#[test]
fn a_file_that_was_missing_is_found_when_it_comes() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    host.change("domains: [domains.txt]", "domains: [domains.txt, more.txt]");
    run.says("`dns.domains[1]` names a file that cannot be read");
    host.write("more.txt", "more.example\n");
    run.says("applied (Corefile)");
}

#[test]
fn sighup_looks_at_the_files_and_says_so() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    run.signal(Signal::HUP);
    run.says("checking the files (SIGHUP)");
    assert!(host.page_is_rewritten());
}

#[test]
fn a_changed_dns_takes_effect_in_the_same_process() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    let coredns = run.child_named("coredns");
    host.change(":1053", ":1054");
    run.says("applied (Corefile");
    assert!(host.asks_at(1054, "www.example.test").is_some(), "it was said to be applied");
    assert_eq!(run.child_named("coredns"), coredns);
}

#[test]
fn the_metrics_move_to_another_socket_without_a_new_process() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    let before = run.children();
    assert!(host.metrics().contains("\nlonghaul_process_up{process=\"coredns\"} 1\n"));
    host.change(":9153", ":9154");
    run.says(&format!("the metrics are at http://{}/metrics", host.socket(9154)));
    assert!(ureq::get(format!("http://{}/metrics", host.socket(9154))).call().is_ok(), "it was said to serve");
    assert!(TcpListener::bind(host.socket(9153)).is_ok(), "the old socket is free");
    assert_eq!(run.children(), before);
}

#[test]
fn a_dns_that_does_not_take_its_file_gets_the_old_one_back() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    let corefile = host.path("state/rendered/Corefile");
    let before = std::fs::read_to_string(&corefile).unwrap();
    let coredns = run.child_named("coredns").unwrap();
    signal_process(coredns, Signal::STOP);
    host.change("www: false", "www: true");
    run.says("CoreDNS refuses it");
    signal_process(coredns, Signal::CONT);
    assert_eq!(std::fs::read_to_string(&corefile).unwrap(), before);
    eventually("a query is answered", || host.asks("www.example.test").is_some());
}

/// Certificate and key of the tests of configuration, each for itself in order.
fn pair(certificate: &str, key: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/config/files");
    format!("names: [pep.example.net], cert: {folder}/{certificate}, key: {folder}/{key}")
}

/// The check knows no keys on P-521, and leaves them to Envoy.
#[test]
fn a_change_that_only_envoy_refuses_is_taken_back() {
    let Some(host) = Host::new() else { return };
    let at = host.address;
    let terminated = host.config().replace("tls: off", &format!("tls: {at}:8443"));
    host.write(
        "longhaul.yaml",
        &format!("{terminated}tls: {{ terminate: [ {{ {} }} ] }}\n", pair("pep.pem", "pep.key")),
    );
    let run = host.start();
    let secret = host.path("state/rendered/sds/pep.example.net.yaml");
    let before = std::fs::read_to_string(&secret).unwrap();
    host.change("pep.key", "p521.key");
    run.says("Envoy refuses it");
    run.says("the previous configuration keeps running");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), before);
    assert!(host.page_is_rewritten());
}

/// Overwrites certificate and key in place, as `cp` does. Envoy itself notices only files that are moved.
fn overwrite(host: &Host, files: &[(&str, &str)]) {
    for (name, text) in files {
        std::fs::write(host.path(name), text).unwrap();
    }
}

#[test]
fn an_overwritten_certificate_is_used_and_a_key_of_another_is_refused() {
    let Some(host) = Host::new() else { return };
    let at = host.address;
    let issue = || {
        let made = rcgen::generate_simple_self_signed(["own.example.test".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    };
    let in_use = || {
        let text = host.admin("/certs");
        let certs: serde_json::Value = serde_json::from_str(&text).unwrap();
        // In no order, with the contexts towards origins, which have no certificate of their own.
        let all = certs["certificates"].as_array().unwrap().iter();
        let mut serials: Vec<String> =
            all.filter_map(|one| Some(one.pointer("/cert_chain/0/serial_number")?.to_string())).collect();
        serials.sort();
        serials.dedup();
        assert!(!serials.is_empty(), "{text}");
        serials
    };
    let (first, second) = (issue(), issue());
    overwrite(&host, &[("own.pem", &first.0), ("own.key", &first.1)]);
    let terminated = host.config().replace("tls: off", &format!("tls: {at}:8443"));
    let entry = "tls: { terminate: [ { names: [own.example.test], cert: own.pem, key: own.key } ] }\n";
    host.write("longhaul.yaml", &(terminated + entry));
    let run = host.start();
    let before = in_use();
    overwrite(&host, &[("own.key", &second.1), ("own.pem", &second.0)]);
    run.says("Envoy uses the renewed certificates for new connections");
    assert_ne!(in_use(), before);
    overwrite(&host, &[("own.key", &first.1)]);
    run.says("`tls.terminate[0].key` is not the key of its certificate");
    assert_ne!(in_use(), before, "the last good pair stays");
    assert!(host.page_is_rewritten());
}

/// Listeners that drain read the files of filters that only the former engine has.
#[test]
fn a_change_of_the_engine_is_no_obstacle_to_the_next_change() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    let of_engine = host.path("state/rendered/ecds/filter-calls.yaml");
    if !of_engine.is_file() {
        return skip("the native module is not there");
    }
    host.change("cache:", "engine: wasm\ncache:");
    run.says("longhaul.yaml changed: applied (");
    host.change("level: safe", "level: off");
    eventually("the page is left alone", || !host.page_is_rewritten());
    assert!(!run.log().contains("refused"), "{}", run.log());
    // The next start has no use for them.
    drop(run);
    let _run = host.start();
    assert!(!of_engine.exists());
}

#[test]
fn a_new_filter_is_loaded_and_one_that_is_none_is_not() {
    let Some(mut host) = Host::new() else { return };
    let filter = host.own_filter();
    host.change("cache:", "engine: wasm\ncache:");
    let run = host.start();
    let envoy = run.child_named("envoy");
    let mut module = std::fs::read(&filter).unwrap();
    // A custom section named `x`: the same code, another file.
    module.extend([0, 2, 1, b'x']);
    let new = host.path("new.wasm");
    std::fs::write(&new, &module).unwrap();
    std::fs::rename(&new, &filter).unwrap();
    run.says("applied (filters/url-rewrite-");
    assert!(host.page_is_rewritten());
    std::fs::write(&new, b"not a module").unwrap();
    std::fs::rename(&new, &filter).unwrap();
    run.says("Envoy refuses it");
    assert!(host.page_is_rewritten());
    assert_eq!(run.child_named("envoy"), envoy);
}
