//! Starting, and the many ways to fail.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Host, PATIENCE, listing, skip};

#[test]
fn it_says_ready_once_with_every_socket_and_serves_pages_and_names_from_then_on() {
    let Some(host) = Host::new() else { return };
    // A file of the cache that earlier releases had.
    fs::create_dir(host.path("cache")).unwrap();
    fs::write(host.path("cache/cache-123"), "a").unwrap();
    let run = host.start();
    assert!(run.log().contains("removed the cache of an earlier release, 1 files, from "), "{}", run.log());
    assert!(!host.path("cache/cache-123").exists());
    let at = host.address;
    assert_eq!(run.ready, format!("ready http={at}:8080 dns={at}:1053 metrics={at}:9153\n"));
    assert!(host.page_is_rewritten());
    // The first query after `ready` must reach a DNS that serves, whatever it answers about an origin that has none.
    assert!(host.asks("www.example.test").is_some());
}

#[test]
fn every_setting_of_dns_is_understood_by_the_dns_server() {
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/config/files");
    let settings = [
        "dns: { domains: [domains.txt], except: [login.example.test, =a.example.test, \"*.b.example.test\", ./except.txt], www: true, \
         mode: prepend, max_origin: 2, ttl: 5m, aaaa: pass, https: strip, dnssec: break, canary: true, reload: 0, health: false, \
         bypass: [192.0.2.0/28, 192.0.2.77] }",
        "dns: { domains: [domains.txt], mode: replace, https: pass, reload: 1d }",
        "dns: {}",
    ];
    for dns in settings {
        let Some(host) = Host::new() else { return };
        let at = host.address;
        let own = format!(
            "tls: {{ terminate: [ {{ names: [pep.example.net], cert: {files}/pep.pem, key: {files}/pep.key }} ] }}\n"
        );
        let names = format!("addresses: [{at}, \"2001:db8::1\"], secure_names: [pep.example.net]");
        let config = host
            .config()
            .replace("dns: { domains: [domains.txt], www: false }", dns)
            .replace("tls: off", &format!("tls: {at}:8443"))
            .replace(&format!("addresses: [{at}]"), &names);
        host.write("except.txt", "bank.example\n");
        host.write("longhaul.yaml", &(config + &own));
        let run = host.start();
        assert!(run.ready.contains(" dns="), "{dns}");
        assert!(
            host.asks("pep.example.net").is_some_and(|answer| answer.get(7).is_some_and(|answers| *answers == 1)),
            "{dns}"
        );
    }
}

#[test]
fn an_occupied_tcp_port_is_named_with_the_key_that_sets_it_and_who_has_it() {
    let Some(host) = Host::new() else { return };
    let taken = TcpListener::bind(host.socket(8080)).unwrap();
    let (status, stdout, stderr) = host.run_refused();
    assert_eq!(status.code(), Some(1), "{stderr}");
    let expected = format!("error: port 8080 (TCP) of {}:8080, set by `listen.http`, is in use by ", host.address);
    assert!(stderr.contains(&expected), "{stderr}");
    assert!(stderr.contains(&format!("(process {})", std::process::id())), "{stderr}");
    assert_eq!(stdout, "");
    drop(taken);
}

#[test]
fn an_occupied_udp_port_is_named_too_and_all_occupied_ones_at_once() {
    let Some(host) = Host::new() else { return };
    let dns = UdpSocket::bind(host.socket(1053)).unwrap();
    let metrics = TcpListener::bind(host.socket(9153)).unwrap();
    let (status, _, stderr) = host.run_refused();
    assert_eq!(status.code(), Some(1));
    assert!(stderr.contains("port 1053 (UDP)") && stderr.contains("`listen.dns`"), "{stderr}");
    assert!(stderr.contains("port 9153 (TCP)") && stderr.contains("`listen.metrics`"), "{stderr}");
    drop((dns, metrics));
}

#[test]
fn a_port_whose_holder_is_about_to_end_is_waited_for() {
    let Some(host) = Host::new() else { return };
    let taken = TcpListener::bind(host.socket(8080)).unwrap();
    let leaving = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        drop(taken);
    });
    let _run = host.start();
    leaving.join().unwrap();
    assert!(host.page_is_rewritten());
}

#[test]
fn a_refused_configuration_starts_nothing_and_leaves_no_folder() {
    let Some(host) = Host::new() else { return };
    host.change("level: safe", "level: sfae");
    let (status, stdout, stderr) = host.run_refused();
    assert_eq!(status.code(), Some(2));
    assert!(stderr.contains("longhaul.yaml:7:19"), "{stderr}");
    assert!(stderr.contains("did you mean `safe`?"), "{stderr}");
    assert_eq!(stdout, "");
    assert!(!host.path("state").exists());
    assert!(!host.path("cache").exists());
}

#[test]
fn a_second_run_with_the_same_state_folder_is_refused_and_the_first_goes_on() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    let (status, _, stderr) = host.run_refused();
    assert_eq!(status.code(), Some(1));
    assert!(
        stderr.contains(&format!("another longhaul (process {}) runs with the state folder", run.pid())),
        "{stderr}"
    );
    assert!(host.page_is_rewritten());
}

#[test]
fn check_finds_nothing_wrong_with_the_sockets_of_the_run_of_its_file_and_names_another_holder() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    let check = |more: &[&str]| {
        let mut command = host.command_for("check");
        let output = command.args(["--here"]).args(more).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (accepted, said) = check(&[]);
    assert!(accepted && !said.contains("in use") && !said.contains("another longhaul"), "{said}");
    drop(run);
    let _holder = TcpListener::bind(host.socket(8080)).unwrap();
    let (accepted, said) = check(&[]);
    assert!(!accepted && said.contains("is in use"), "{said}");
}

#[test]
fn a_missing_program_is_named_with_the_ways_to_give_it() {
    let Some(host) = Host::new() else { return };
    let output = host.command().env("LONGHAUL_ENVOY", "/nonexistent/envoy").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.contains("Envoy was not found in /nonexistent/envoy. Set --envoy or LONGHAUL_ENVOY"), "{stderr}");
}

#[test]
fn a_program_that_ends_at_once_ends_the_start_and_the_other_one_with_it() {
    let Some(host) = Host::new() else { return };
    let output = host.command().env("LONGHAUL_COREDNS", "/bin/false").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("CoreDNS ended with status 1 before it was ready"), "{stderr}");
    assert!(TcpListener::bind(host.socket(8080)).is_ok(), "Envoy still has its port");
    assert!(listing(&host.path("state")).contains(&"rendered".to_owned()));
}

/// Runs `longhaul` to its end in a user namespace. Its programs may have so many inotify instances together.
fn run_with_inotify_instances(host: &Host, most: u32) -> Option<Output> {
    let command = host.command();
    let mut limited = Command::new("unshare");
    limited.args(["--user", "--map-root-user", "sh", "-c"]);
    limited.arg(format!("echo {most} > /proc/sys/user/max_inotify_instances || exit 99; exec \"$@\"")).arg("sh");
    limited.arg(command.get_program()).args(command.get_args());
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = limited.output().ok()?;
    if output.status.code() == Some(99) || String::from_utf8_lossy(&output.stderr).starts_with("unshare:") {
        skip("needs user namespaces");
        return None;
    }
    Some(output)
}

#[test]
fn too_few_inotify_instances_are_named_with_the_setting_that_gives_more() {
    // One for longhaul itself; three is less than the files that Envoy watches.
    for (most, needed) in [(0, "1 inotify instances are needed"), (4, "and the kernel gives this user 3 more")] {
        let Some(host) = Host::new() else { return };
        let Some(output) = run_with_inotify_instances(&host, most) else { return };
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(needed), "{most}: {stderr}");
        assert!(stderr.contains("raise fs.inotify.max_user_instances"), "{stderr}");
        assert!(!stderr.contains("assert"), "Envoy was started all the same: {stderr}");
    }
}

#[test]
fn a_file_that_envoy_cannot_read_at_the_start_ends_it_with_the_name_of_what_failed() {
    let Some(host) = Host::new() else { return };
    // Cut off on the disk, just before Envoy reads it.
    let broken = host.path("envoy");
    let routes = host.path("state/rendered/rds/edge.yaml");
    fs::write(&broken, format!("#!/bin/sh\necho 'resources: [' > {}\nexec $REAL_ENVOY \"$@\"\n", routes.display()))
        .unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = host.command();
    let real =
        command.get_envs().find(|(name, _)| *name == "LONGHAUL_ENVOY").and_then(|(_, value)| value).unwrap().to_owned();
    let output = command.env("REAL_ENVOY", real).env("LONGHAUL_ENVOY", &broken).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let expected = "Envoy refused part of its configuration (http.edge_http.rds.edge.update_failure)";
    assert!(stderr.contains(expected), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

/// Reads the messages of a unit's process until one has `wanted`. Returns all of them, in order.
fn messages_until(socket: &UnixDatagram, wanted: &str) -> Vec<String> {
    let mut messages = Vec::new();
    let mut buffer = [0; 4096];
    while !messages.iter().any(|message: &String| message.contains(wanted)) {
        let size = socket.recv(&mut buffer).unwrap_or_else(|error| panic!("no {wanted} in {messages:?}: {error}"));
        messages.push(String::from_utf8_lossy(buffer.get(..size).unwrap()).into_owned());
    }
    messages
}

#[test]
fn the_service_manager_hears_ready_with_the_ready_line_and_reloading_around_a_change() {
    let Some(host) = Host::new() else { return };
    let socket = UnixDatagram::bind(host.path("notify")).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let run = host.start_with(&[("NOTIFY_SOCKET", host.path("notify").to_str().unwrap()), ("WATCHDOG_USEC", "400000")]);
    // `start` has read the line. Before it, only the time for the start is extended.
    let first = messages_until(&socket, "READY=1");
    let (ready, before) = first.split_last().unwrap();
    assert!(ready.contains("STATUS=Serving as edge"), "{first:?}");
    assert!(before.iter().all(|message| message.starts_with("EXTEND_TIMEOUT_USEC=180000000")), "{first:?}");
    assert!(!before.is_empty(), "a unit with a short `TimeoutStartSec` would be killed");
    messages_until(&socket, "WATCHDOG=1");
    messages_until(&socket, "WATCHDOG=1");
    host.change("level: safe", "level: off");
    let begun = messages_until(&socket, "RELOADING=1");
    assert!(begun.last().unwrap().contains("MONOTONIC_USEC="), "{begun:?}");
    messages_until(&socket, "READY=1");
    messages_until(&socket, "STATUS=Serving as edge; changes applied: 1");
    host.change("level: off", "level: of");
    messages_until(&socket, "were refused");
    // Nothing changed, and `systemctl reload` waits all the same.
    run.signal(Signal::HUP);
    messages_until(&socket, "RELOADING=1");
    messages_until(&socket, "READY=1");
    run.signal(Signal::TERM);
    messages_until(&socket, "STOPPING=1");
}

#[test]
fn every_line_of_a_json_log_has_a_time_a_level_a_part_and_a_message() {
    let Some(host) = Host::new() else { return };
    let run = host.start_by(|mut command| {
        command.args(["--log-format", "json"]);
        command
    });
    host.change("level: safe", "level: sfae");
    run.says("did you mean `safe`?");
    run.signal(Signal::TERM);
    run.says("caught ENVOY_SIGTERM");
    let log = run.log();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        for field in ["time", "level", "part", "message"] {
            assert!(line[field].is_string(), "{line}");
        }
    }
    let of = |part: &str, level: &str| lines.iter().any(|line| line["part"] == part && line["level"] == level);
    assert!(of("longhaul", "error") && of("envoy/main", "info"), "{log}");
}
