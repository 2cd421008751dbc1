//! The operator's program hears when a problem begins and when it ends.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Host, eventually};

/// Writes a program of the shell into the folder of the box.
fn program(host: &Host, name: &str, lines: &str) {
    host.write(name, &format!("#!/bin/sh\n{lines}\n"));
    fs::set_permissions(host.path(name), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_refused_change_is_told_when_it_begins_and_when_it_ends_and_no_shell_reads_it() {
    let Some(host) = Host::new() else { return };
    let heard = host.path("heard");
    let words = r#""$1" "$LONGHAUL_EVENT" "$LONGHAUL_PROBLEM" "$LONGHAUL_ROLE" "$LONGHAUL_BOX" "$LONGHAUL_TEXT""#;
    program(&host, "notice", &format!("printf '%s|' {words} >> {0}; echo >> {0}", heard.display()));
    let text = host.config() + "id: box-7\nnotify: { command: [./notice, $(id)] }\n";
    host.write("longhaul.yaml", &text);
    let run = host.start();
    host.change("level: safe", "level: sfae");
    let lines = || fs::read_to_string(&heard).unwrap_or_default();
    eventually("the beginning is told", || lines().contains('\n'));
    assert!(lines().starts_with("$(id)|begin|change_refused|edge|box-7|"), "{}", lines());
    // The next program hears of the end. It fails, and its words are in the log.
    program(&host, "failing", "echo out of paper >&2; exit 7");
    host.write("longhaul.yaml", &text.replace("[./notice, $(id)]", "./failing"));
    run.says("notify: out of paper");
    run.says("`notify.command` did not hear of the end of change_refused");
    assert!(run.log().contains("failing ended with status 7"), "{}", run.log());
    assert_eq!(lines().lines().count(), 1);
}
