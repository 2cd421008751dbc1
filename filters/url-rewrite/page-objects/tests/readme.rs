//! The README's tables are the code's.

#![allow(clippy::unwrap_used)] // clippy.toml does not see that this is a test

#[path = "../../url-rewriting/tests/tables/mod.rs"]
mod tables;

use page_objects::{Failure, Skip};
use tables::assert_lists;

#[test]
fn every_reason_against_an_object_is_listed() {
    assert_lists("Why an object, or all objects", Skip::ALL.iter().map(|it| it.as_str()), &[]);
    assert_lists("Why a prefetch was without use", Failure::ALL.iter().map(|it| it.as_str()), &[]);
}
