//! The README's tables are the code's, and its configuration is one.

#![allow(clippy::unwrap_used)] // clippy.toml does not see that this is a test

use std::collections::BTreeSet;
use url_mapping::{Reason, Refusal};
use url_rewriting::eligible::Ineligible;
use url_rewriting::inline::Kept;
use url_rewriting::prefetch::{Failure, Skip};
use url_rewriting::{BailOut, Limits, Plan};

const README: &str = include_str!("../../README.md");

/// First and second cell of every row of the table below `heading`.
fn table(heading: &str) -> Vec<(String, String)> {
    let (_, below) = README.split_once(heading).unwrap_or_else(|| unreachable!("no `{heading}` in the README"));
    below
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(|row| {
            let mut cells = row.trim_matches('|').split('|').map(str::trim);
            (cells.next().unwrap().trim_matches('`').to_owned(), cells.next().unwrap().to_owned())
        })
        .collect()
}

#[track_caller]
fn assert_lists(heading: &str, expected: impl Iterator<Item = &'static str>, more: &[&'static str]) {
    let listed: Vec<String> = table(heading).into_iter().map(|(label, _)| label).collect();
    let expected: Vec<String> = expected.chain(more.iter().copied()).map(str::to_owned).collect();
    assert_eq!(listed, expected, "under `{heading}`");
}

#[test]
fn every_reason_is_listed_with_its_own_words() {
    let expected: Vec<(String, String)> =
        Reason::ALL.iter().map(|it| (it.as_str().to_owned(), it.explanation().to_owned())).collect();
    assert_eq!(table("Why a URL is left"), expected);
}

#[test]
fn every_refusal_bail_out_and_exception_is_listed() {
    let refusals = "Why a request to the proxy is refused";
    assert_lists(refusals, Refusal::ALL.iter().map(|it| it.as_str()), &["transparent_port", "not_an_object"]);
    for (refusal, (_, words)) in Refusal::ALL.iter().zip(table(refusals)) {
        assert_eq!(refusal.explanation(), words);
    }
    assert_lists("Why a body passed untouched", BailOut::ALL.iter().map(|it| it.as_str()), &["trailers"]);
    assert_lists("Why an object, or nothing", Skip::ALL.iter().map(|it| it.as_str()), &[]);
    assert_lists("Why a fetch was of no use", Failure::ALL.iter().map(|it| it.as_str()), &[]);
    assert_lists("Why an object was not put into the page", Kept::ALL.iter().map(|it| it.as_str()), &[]);
    let ineligible: Vec<(String, String)> =
        Ineligible::ALL.iter().map(|it| (it.as_str().to_owned(), it.explanation().to_owned())).collect();
    assert_eq!(table("Everything else passes with its body"), ineligible);
}

#[test]
fn labels_are_words_for_metrics_and_differ() {
    let labels: Vec<&str> = Reason::ALL.iter().map(|it| it.as_str()).collect();
    assert_eq!(labels.iter().collect::<BTreeSet<_>>().len(), labels.len());
    for label in labels {
        assert!(label.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{label}");
    }
    for (position, reason) in Reason::ALL.iter().enumerate() {
        assert_eq!(reason.index(), position);
        assert!(reason.explanation().ends_with('.'), "{reason}");
    }
}

#[test]
fn the_example_configuration_is_one_and_says_the_defaults() {
    let (_, from) = README.split_once("```json").unwrap();
    let plan = Plan::from_json(from.split_once("```").unwrap().0.as_bytes()).unwrap();
    assert_eq!(plan.limits(), &Limits::default());
}
