//! The messages to an operator. A file of `refused/` stands beside its exact message, a file of `accepted/` beside the
//! output of `longhaul check`.
//!
//! To add a case, add its `.yaml`. `SNAPSHOTS=overwrite cargo test -p longhaul --test config` writes the `.txt` beside
//! it. Read it before you commit it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod wrong;

use std::fs;
use std::path::{Path, PathBuf};

use longhaul::describe;
use longhaul_config::{LoadError, load};
use longhaul_derive::{HostFacts, derive};
use snapbox::{Assert, Data};

/// A relative path, as an operator would write it. Tests run in the folder of their crate.
const CASES: &str = "tests/config";
/// The columns of the files under review.
const WIDTH: usize = 140;

fn cases(kind: &str) -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> = fs::read_dir(Path::new(CASES).join(kind))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

/// Compares with the `.txt` beside the case. The path of this checkout is no part of a message.
fn compare(case: &Path, actual: &str) {
    let here = fs::canonicalize(CASES).unwrap();
    let actual = actual.replace(here.to_str().unwrap(), "[CASES]");
    let expected = Data::read_from(&case.with_extension("txt"), None);
    Assert::new().action_env("SNAPSHOTS").eq(actual, expected);
}

#[test]
fn every_refused_file_gets_its_message_with_all_problems_at_once() {
    for case in cases("refused") {
        match load(&case) {
            Err(LoadError::Refused(report)) => compare(&case, &report.render(false)),
            Err(error) => panic!("{}: {error}", case.display()),
            Ok(_) => panic!("{}: accepted", case.display()),
        }
    }
}

#[test]
fn every_accepted_file_gets_its_warnings_its_choices_and_their_reasons() {
    for case in cases("accepted") {
        let loaded = load(&case).unwrap_or_else(|error| panic!("{}: {error}", case.display()));
        let derived = derive(&loaded.settings, &HostFacts::unknown());
        let file = case.display().to_string();
        compare(
            &case,
            &format!("{}{}", loaded.report.render(false), describe(&file, &loaded.settings, &derived, WIDTH)),
        );
    }
}

#[test]
fn a_file_that_is_not_there_or_not_text_is_refused_by_name() {
    let missing = load(Path::new("tests/config/missing.yaml")).unwrap_err();
    assert!(
        missing.to_string().starts_with("error: cannot read the configuration file tests/config/missing.yaml: "),
        "{missing}"
    );
    let binary = load(Path::new("tests/config/files/latin1.txt")).unwrap_err();
    assert!(binary.to_string().ends_with("line 2 is not UTF-8 text; save the file as UTF-8"), "{binary}");
}

#[test]
fn the_message_that_the_readme_shows_is_the_one_that_is_printed() {
    let readme = fs::read_to_string("../README.md").unwrap();
    let message = fs::read_to_string("tests/config/refused/https_without_a_name.txt").unwrap();
    let message = message.replace("tests/config/refused/https_without_a_name.yaml", "longhaul.yaml");
    assert!(readme.contains(message.trim_end()));
}
