//! Reads the tables of the README, for the tests that compare them with the labels of each crate.

#![allow(dead_code, unreachable_pub)] // each test uses its part
#![allow(clippy::unwrap_used)] // clippy.toml does not see that this is a test

pub const README: &str = include_str!("../../../README.md");

/// Returns the first and second cell of every row of the table below `heading`.
pub fn table(heading: &str) -> Vec<(String, String)> {
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
pub fn assert_lists(heading: &str, expected: impl Iterator<Item = &'static str>, more: &[&'static str]) {
    let listed: Vec<String> = table(heading).into_iter().map(|(label, _)| label).collect();
    let expected: Vec<String> = expected.chain(more.iter().copied()).map(str::to_owned).collect();
    assert_eq!(listed, expected, "under `{heading}`");
}
