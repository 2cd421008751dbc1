//! The README's tables are the code's, and its configuration is one.

#![allow(clippy::unwrap_used)] // clippy.toml does not see that this is a test

#[path = "../../url-rewriting/tests/tables/mod.rs"]
mod tables;

use page_objects::Config;
use page_objects::inline::NotInlined;
use page_objects::prefetch::{Failure, Skip};
use tables::{README, assert_lists};

#[test]
fn every_reason_against_an_object_is_listed() {
    assert_lists("Why an object, or all objects", Skip::ALL.iter().map(|it| it.as_str()), &[]);
    assert_lists("Why a prefetch was without use", Failure::ALL.iter().map(|it| it.as_str()), &[]);
    assert_lists("Why an object was not inlined", NotInlined::ALL.iter().map(|it| it.as_str()), &[]);
}

#[test]
fn the_example_configuration_has_this_crates_keys() {
    let (_, from) = README.split_once("```json").unwrap();
    let config: Config = serde_json::from_str(from.split_once("```").unwrap().0).unwrap();
    assert!(config.prefetch && config.inline.is_none());
}
