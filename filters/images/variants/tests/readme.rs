//! The README's table of reasons is that of the code.

use image_variants::Left;

const README: &str = include_str!("../../README.md");

#[test]
fn the_reasons_in_the_readme_are_those_of_the_code() {
    let expected: Vec<String> =
        Left::ALL.iter().map(|left| format!("| `{}` | {} |", left.as_str(), left.sentence())).collect();
    let reasons = README.split_once("\n## Reasons\n").map_or("", |(_, below)| below);
    let rows: Vec<&str> =
        reasons.lines().skip_while(|line| !line.starts_with("| `")).take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows, expected);
}
