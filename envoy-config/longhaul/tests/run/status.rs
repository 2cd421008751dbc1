//! `longhaul status`: its output for a healthy run, for a sick one, and without a run.

use std::net::TcpListener;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Host, eventually, signal_process};

fn json(host: &Host) -> Value {
    let output = host.status(&["--json"]);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_run_shows_what_is_in_force_and_what_it_did() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    assert!(host.page_is_rewritten());
    assert!(host.asks("www.example.test").is_some());
    eventually("the page and the question are counted", || {
        let status = json(&host);
        status["traffic"]["pages"]["rewritten"] == 1 && status["dns"]["questions"] == 1
    });
    let status = json(&host);
    assert_eq!(status["problems"], Value::Array(Vec::new()), "{status:#}");
    assert_eq!(status["pid"], run.pid());
    assert_eq!(status["config"]["file"], host.path("longhaul.yaml").display().to_string());
    assert_eq!(status["config"]["is_the_file"], true);
    assert_eq!(status["config"]["refused"], Value::Null);
    assert_eq!(status["listen"]["http"], host.socket(8080).to_string());
    for (child, version) in [("envoy", "1."), ("coredns", "1.")] {
        assert_eq!(status[child]["up"], true);
        assert_eq!(status[child]["restarts"], 0);
        assert!(status[child]["version"].as_str().unwrap().starts_with(version), "{status:#}");
    }
    let traffic = &status["traffic"];
    assert_eq!(traffic["pages"]["urls_moved"], 1);
    assert_eq!(traffic["pages"]["per_page"]["round_trips_saved"], 1.0);
    assert_eq!(traffic["upstream"]["requests"], 1, "a mapped origin is an origin");
    assert_eq!(traffic["clients"]["requests"], 1);
    let output = host.status(&[]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("ok\nlonghaul "), "{text}");
    for part in ["1 rewritten, 1 URLs moved, 0 left", "no restarts", "1 questions", ":5300 up"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn a_refused_change_and_a_death_are_shown_and_the_exit_says_that_something_is_wrong() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    host.change("level: safe", "level: sfae");
    run.says("was refused");
    eventually("the refusal is shown", || json(&host)["config"]["refused"]["standing"] == true);
    let output = host.status(&[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("problem: the present files were refused"), "{text}");
    assert!(text.contains("last refused"), "{text}");

    host.change("level: sfae", "level: off");
    eventually("the next change is in force", || json(&host)["config"]["changes"] == 1);
    signal_process(run.child_named("coredns").unwrap(), Signal::KILL);
    run.says("CoreDNS responds again");
    eventually("the death is counted", || json(&host)["coredns"]["restarts"] == 1);
    let status = json(&host);
    assert_eq!(status["config"]["refused"]["standing"], false);
    assert_eq!(status["coredns"]["last_end"], "was killed by signal 9");
    assert_eq!(status["envoy"]["restarts"], 0);
}

#[test]
fn nothing_to_show_is_distinguished_from_a_failure() {
    let Some(host) = Host::new() else { return };
    let output = host.status(&[]);
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: no `longhaul run` has the state folder "), "{said}");
    // What a killed run leaves is not taken for a run.
    let mut run = host.start();
    signal_process(run.pid(), Signal::KILL);
    run.wait();
    assert!(host.path("state/run.json").exists());
    assert_eq!(host.status(&["--json"]).status.code(), Some(3));
}

#[test]
fn an_edge_without_lists_is_healthy_and_shows_no_row_that_is_not_its() {
    let Some(host) = Host::new() else { return };
    host.write("longhaul.yaml", &host.config().replace("dns: { domains: [domains.txt], www: false }\n", ""));
    let _run = host.start();
    let output = host.status(&[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.starts_with("ok\n") && !text.contains("STEERING"), "{text}");
    assert_eq!(json(&host)["dns"]["steering"], Value::Null);
}

#[test]
fn a_remote_without_a_listening_dns_starts_and_serves_no_names() {
    let Some(host) = Host::new() else { return };
    let at = host.address;
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/config/files");
    host.write(
        "longhaul.yaml",
        &format!(
            "role: remote\n\
             link: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\n\
             proxy: {{ addresses: [{at}] }}\n\
             listen: {{ http: {at}:8080, tls: off, dns: off, metrics: {at}:9153, intercept: none }}\n\
             cache: off\n\
             split: {{ peer: \"127.0.0.2:8443\", cert: {files}/pep.pem, key: {files}/pep.key, ca: {files}/pep.pem }}\n"
        ),
    );
    let dist = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/dist");
    let run = host.start_with(&[("LONGHAUL_DIST", dist)]);
    assert_eq!(run.ready, format!("ready http={at}:8080 metrics={at}:9153\n"));
    let coredns = run.child_named("coredns").unwrap();
    let sockets = std::process::Command::new("ss").args(["-Hlnptu"]).output().unwrap();
    let sockets = String::from_utf8(sockets.stdout).unwrap();
    let own: Vec<&str> = sockets.lines().filter(|line| line.contains(&format!("pid={coredns},"))).collect();
    assert!(own.iter().all(|line| line.contains(" 127.0.0.1:") && !line.contains(":53 ")), "{own:?}");
    let output = host.status(&[]);
    let text = String::from_utf8(output.stdout).unwrap();
    // The only problem is that this test has no ground.
    assert_eq!(text.matches("problem: ").count(), 1, "{text}");
    for row in ["pages", "cache", "compressed", "origins", "STEERING"] {
        assert!(!text.lines().any(|line| line.starts_with(row)), "{row}\n{text}");
    }
}

#[test]
fn the_status_page_shows_the_same_as_the_command_to_its_own_names_alone() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    run.says(&format!("the status page is at http://{}/", host.socket(9900)));
    let page = host.status_page("GET", "/", "localhost:9900");
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("Everything works."), "{page}");
    let answer = host.status_page("GET", "/status.json", "127.0.0.1");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let served: Value = serde_json::from_str(body).unwrap();
    let printed = json(&host);
    assert_eq!(served["listen"]["status"], host.socket(9900).to_string());
    for same in ["problems", "warnings", "pid", "role", "listen", "link", "certificates"] {
        assert_eq!(served[same], printed[same], "{same}");
    }
    for (method, name, status) in [("GET", "evil.test", 421), ("POST", "localhost", 405), ("GET", "", 421)] {
        let refused = host.status_page(method, "/", name);
        assert!(refused.starts_with(&format!("HTTP/1.1 {status} ")), "{refused}");
        assert!(!refused.contains("Longhaul"), "{refused}");
    }

    host.change("level: safe", "level: sfae");
    eventually("the page shows the refusal", || {
        host.status_page("GET", "/", "localhost").contains("Problem: the present files were refused")
    });
    host.change("level: sfae", "level: safe");
    host.change(&format!("status: {}", host.socket(9900)), "status: off");
    eventually("the page has gone", || host.status_page("GET", "/", "localhost").is_empty());
    assert_eq!(json(&host)["problems"], Value::Array(Vec::new()));
}

#[test]
fn a_busy_socket_prevents_a_start_only_if_the_operator_chose_it() {
    let Some(host) = Host::new() else { return };
    let _taken = TcpListener::bind(host.socket(9900)).unwrap();
    let (status, _, said) = host.run_refused();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("set by `listen.status`, is in use"), "{said}");

    host.change(&format!("status: {}, ", host.socket(9900)), "");
    // Another run of these tests may have it already.
    let _taken = TcpListener::bind("127.0.0.1:9900");
    let run = host.start();
    run.says("WARNING longhaul: no status page: 127.0.0.1:9900, the default of `listen.status`, is in use");
    assert_eq!(json(&host)["listen"]["status"], Value::Null);
    assert_eq!(json(&host)["problems"], Value::Array(Vec::new()));
}
