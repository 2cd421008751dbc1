//! Conformance tests of other projects: html5lib's tokenizer inputs and the tokens of css-parsing-tests.
//!
//! `expected_failures.txt` names each known difference with its reason. The test fails if an unlisted case fails, and
//! also if a listed case passes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::collections::BTreeSet;

use common::{corpora, files_below, page, plan, rewrite, rewrite_in, sheet, undo};
use serde_json::Value;
use url_rewriting::Body;

/// Returns the names under this heading.
fn expected_failures(heading: &str) -> BTreeSet<String> {
    let listed = include_str!("expected_failures.txt").lines().filter(|line| !line.starts_with('#'));
    listed.filter_map(|line| line.strip_prefix(heading)?.strip_prefix(": ")).map(str::to_owned).collect()
}

fn compare(heading: &str, failed: &BTreeSet<String>) {
    let expected = expected_failures(heading);
    let new: Vec<_> = failed.difference(&expected).collect();
    let mended: Vec<_> = expected.difference(failed).collect();
    assert!(new.is_empty(), "not in expected_failures.txt: {new:#?}");
    assert!(mended.is_empty(), "unexpected success, take out of expected_failures.txt: {mended:#?}");
}

fn read_json(path: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Returns the name and the input of every tokenizer test.
fn tokenizer_inputs() -> Vec<(String, String)> {
    let Some(folder) = corpora("conformance/html5lib-tests/tokenizer") else { return Vec::new() };
    let mut inputs = Vec::new();
    for path in files_below(&folder, "test") {
        let json = read_json(&path);
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        for test in json["tests"].as_array().into_iter().flatten() {
            let name = format!("{file}/{}", test["description"].as_str().unwrap());
            inputs.push((name, test["input"].as_str().unwrap().to_owned()));
        }
    }
    inputs
}

#[test]
fn tokenizer_inputs_are_untouched_at_every_split_and_only_urls_in_them_move() {
    let (off, full) = (plan("off"), plan("full"));
    let image = "<img src=http://a.example/x.png>";
    let mut failed = BTreeSet::new();
    let mut count = 0;
    for (name, input) in tokenizer_inputs() {
        count += 1;
        for split in 0..=input.len().min(200) {
            let (first, second) = input.as_bytes().split_at(split);
            let pieces = [first, second].into_iter();
            assert_eq!(common::rewrite_pieces(&off, page(), pieces).bytes, input.as_bytes(), "{name} split at {split}");
        }
        // One movable URL stands before the input and one behind it, for any effect of the input on the tokenizer.
        let html = format!("{image}{input}{image}");
        let whole = rewrite(&full, page(), html.as_bytes());
        for piece in [1, 2, 3, 5, 8, 13, 21, 34] {
            assert_eq!(whole, rewrite_in(&full, page(), html.as_bytes(), piece), "{name} in pieces of {piece}");
        }
        let moved = "<img src=https://pep.example.net/a.example/x.png>";
        assert!(whole.text().starts_with(moved), "{name}");
        if let Err(fault) = undo::only_moved_urls_differ(html.as_bytes(), &whole.bytes, &whole.seen, full.mapper()) {
            eprintln!("{name}: {fault}");
            failed.insert(name);
        }
    }
    if count > 0 {
        compare("tokenizer", &failed);
        eprintln!("{count} inputs");
    }
}

/// Collects the URLs that css-parsing-tests finds in this list of component values: `url()` tokens, and strings in
/// `url("")`.
fn urls_in(value: &Value, found: &mut Vec<String>) {
    let Some(list) = value.as_array() else { return };
    match list.first().and_then(Value::as_str) {
        Some("url") => found.push(list[1].as_str().unwrap().to_owned()),
        Some("function") if list[1].as_str().is_some_and(|name| name.eq_ignore_ascii_case("url")) => {
            // A string comes first in the function or not at all. The rest are modifiers.
            match list.iter().skip(2).find(|item| item.as_str() != Some(" ")) {
                Some(item) if item[0] == "string" => found.push(item[1].as_str().unwrap().to_owned()),
                _ => list.iter().skip(2).for_each(|item| urls_in(item, found)),
            }
        }
        _ => list.iter().for_each(|item| urls_in(item, found)),
    }
}

#[test]
fn url_tokens_are_those_of_css_parsing_tests() {
    let Some(folder) = corpora("conformance/css-parsing-tests") else { return };
    let plan = plan("full");
    let sheet = || Body { encoding: Some(encoding_rs::UTF_8), ..sheet() };
    let mut failed = BTreeSet::new();
    let mut count = 0;
    let json = read_json(&folder.join("component_value_list.json"));
    let list = json.as_array().unwrap();
    for case in list.chunks_exact(2) {
        let input = case[0].as_str().unwrap();
        let mut wanted = Vec::new();
        urls_in(&case[1], &mut wanted);
        // In a declaration, browsers fetch every such token.
        let css = format!("a{{b:{input}");
        let done = rewrite(&plan, sheet(), css.as_bytes());
        let found: Vec<String> = done.seen.iter().map(|url| url.url.clone()).collect();
        count += wanted.len();
        if found != wanted {
            eprintln!("{input:?}: wanted {wanted:?}, found {found:?}");
            failed.insert(format!("{input:?}"));
        }
        for piece in 1..20 {
            assert_eq!(done, rewrite_in(&plan, sheet(), css.as_bytes(), piece), "{input:?} in pieces of {piece}");
        }
    }
    compare("css", &failed);
    eprintln!("{count} URLs");
}
