//! The README's tables of reasons are those of the code.

use object_rules::{Outcome, Past};

const README: &str = include_str!("../../README.md");

/// Returns the rows of the table below a heading.
fn rows(heading: &str) -> Vec<&'static str> {
    let below = README.split_once(&format!("\n## {heading}\n")).map_or("", |(_, below)| below);
    let section = below.split("\n## ").next().unwrap_or_default();
    section.lines().filter(|line| line.starts_with("| `")).collect()
}

#[test]
fn the_readme_has_every_reason() {
    let outcomes = Outcome::ALL.iter().map(|one| format!("| `{}` | {} |", one.as_str(), one.explanation()));
    assert_eq!(rows("Requests"), outcomes.collect::<Vec<_>>());
    let past = Past::ALL.iter().map(|one| format!("| `{}` | {} |", one.as_str(), one.explanation()));
    assert_eq!(rows("Responses that are not stored"), past.collect::<Vec<_>>());
}
