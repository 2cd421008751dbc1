//! The configurations that a box had, and the way back to an earlier one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Host, eventually};

/// Types a command about the history of this box.
fn typed(host: &Host, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.args(words).arg("--state").arg(host.path("state")).output().unwrap()
}

/// Types it, and returns what it says. It must succeed.
fn said(host: &Host, words: &[&str]) -> String {
    let output = typed(host, words);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn history(host: &Host) -> Value {
    serde_json::from_str(&said(host, &["history", "--json"])).unwrap()
}

#[test]
fn a_change_is_rolled_back_within_seconds_and_the_history_says_what_came_when() {
    let Some(host) = Host::new() else { return };
    let none = typed(&host, &["history"]);
    assert_eq!(none.status.code(), Some(3), "{none:?}");
    let _run = host.start();
    let first = fs::read_to_string(host.path("longhaul.yaml")).unwrap();
    host.change("level: safe", "level: off");
    eventually("the page is left alone", || !host.page_is_rewritten());
    let changed = fs::read_to_string(host.path("longhaul.yaml")).unwrap();
    eventually("both are in the history", || history(&host).as_array().unwrap().len() == 2);
    assert_eq!(said(&host, &["history", "show", "1"]), first);
    let difference = said(&host, &["history", "diff", "1", "2"]);
    assert!(difference.contains("-rewrite: { level: safe") && difference.contains("+rewrite: { level: off"));
    assert!(said(&host, &["history", "diff", "1"]).ends_with(difference.split_once("@@").unwrap().1));
    assert!(said(&host, &["rollback", "--dry-run"]).contains("+rewrite: { level: safe"));
    assert_eq!(fs::read_to_string(host.path("longhaul.yaml")).unwrap(), changed);

    fs::set_permissions(host.path("longhaul.yaml"), fs::Permissions::from_mode(0o640)).unwrap();
    let began = Instant::now();
    let words = said(&host, &["rollback"]);
    assert!(words.contains("is configuration 1 again") && words.contains("in force after"), "{words}");
    assert!(host.page_is_rewritten());
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(fs::read_to_string(host.path("longhaul.yaml")).unwrap(), first);
    assert_eq!(fs::read_to_string(host.path("longhaul.yaml.replaced")).unwrap(), changed);
    let mode = fs::metadata(host.path("longhaul.yaml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let list = history(&host);
    assert_eq!((&list[0]["came_by"], &list[0]["number"]), (&"change of the file, back to 1".into(), &3.into()));
    assert_eq!((&list[1]["replaced_by"], &list[2]["came_by"]), (&3.into(), &"start".into()));
    assert_eq!(typed(&host, &["rollback", "9"]).status.code(), Some(1));
}

#[test]
fn a_refused_file_goes_back_to_the_one_in_force_and_a_box_that_is_down_starts_with_the_one_before() {
    let Some(host) = Host::new() else { return };
    let run = host.start();
    let first = fs::read_to_string(host.path("longhaul.yaml")).unwrap();
    host.change("level: safe", "level: sfae");
    run.says("the previous configuration keeps running");
    assert!(said(&host, &["rollback"]).contains("in force after"));
    assert_eq!(fs::read_to_string(host.path("longhaul.yaml")).unwrap(), first);
    let ok = || host.status(&[]).status.success();
    eventually("nothing is refused any more", ok);
    drop(run);

    host.write("longhaul.yaml", "nonsense: 1\n");
    assert!(!host.run_refused().0.success());
    let run = host.start_by(|mut command| {
        command.arg("--previous");
        command
    });
    assert!(run.log().contains("is configuration 1 again"), "{}", run.log());
    assert!(host.page_is_rewritten());
    assert_eq!(history(&host).as_array().unwrap().len(), 1, "the same one again is no new one");
    drop(run);
    host.write("longhaul.yaml", "nonsense: 2\n");
    assert!(said(&host, &["rollback", "1"]).contains("nothing runs: start the box"));
}
