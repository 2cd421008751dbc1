//! The README's tables agree with the code, and its configuration is valid.

#![allow(clippy::unwrap_used)] // clippy.toml does not see that this is a test

mod tables;

use std::collections::BTreeSet;

use tables::{README, assert_lists, table};
use url_mapping::{Reason, Refusal};
use url_rewriting::eligible::Ineligible;
use url_rewriting::{BailOut, Limits, Plan};

#[test]
fn every_reason_is_listed_with_its_own_words() {
    let expected: Vec<(String, String)> =
        Reason::ALL.iter().map(|it| (it.as_str().to_owned(), it.explanation().to_owned())).collect();
    assert_eq!(table("Why a URL stays"), expected);
}

#[test]
fn every_refusal_bail_out_and_exception_is_listed() {
    let refusals = "Why a request to the proxy is refused";
    assert_lists(refusals, Refusal::ALL.iter().map(|it| it.as_str()), &["transparent_port", "not_an_object"]);
    for (refusal, (_, words)) in Refusal::ALL.iter().zip(table(refusals)) {
        assert_eq!(refusal.explanation(), words);
    }
    assert_lists("Why the rest of a body passed unchanged", BailOut::ALL.iter().map(|it| it.as_str()), &["trailers"]);
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
