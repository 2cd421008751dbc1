//! Passes the URL test data of the Web Platform Tests through the map in both directions. Here the file, and not the
//! `url` crate, says how a browser reads an input.
//!
//! `testdata/expected_failures.txt` lists the cases that are known to fail, one on each line as `INPUT<tab>BASE` in the
//! spelling of JSON. A listed case fails the test if it succeeds, or if the file no longer contains it.

#![allow(clippy::unwrap_used, clippy::panic)] // clippy.toml does not recognise test helpers

mod common;

use common::{corpora, mapper, true_url};
use serde_json::Value;
use std::collections::BTreeSet;
use url::Url;
use url_mapping::{Base, Level, Mapper, Outcome, Reason, Scheme, Use};

/// Fails with the reason if the map disagrees with the case.
fn check(mapper: &Mapper, case: &Value) -> Result<(), String> {
    let input = case["input"].as_str().unwrap();
    // Without a base `http:x` is absolute, but it is relative to an http page.
    let http = input.trim().to_ascii_lowercase().strip_prefix("http:").is_some_and(|rest| !rest.starts_with("//"));
    let unrelated = if http { "https://www.foo.example/" } else { "http://www.foo.example/" };
    let base = case["base"].as_str().unwrap_or(unrelated);
    let Some((base, on_proxy)) = bases(base) else { return Ok(()) };
    let href = case["href"].as_str().filter(|_| case["failure"] != true);
    // A relative input without a base of its own fails. With the base of this test it may succeed.
    let has_base = case["base"].is_string();
    for base in [&base, &on_proxy] {
        let outcome = mapper.forward(base, input, Use::Image);
        match (&outcome, href) {
            (Outcome::Moved(moved) | Outcome::Pinned(moved, _), Some(href)) => {
                let truth = href.split('#').next().unwrap_or_default();
                let asked = Url::parse(moved).map_err(|error| format!("{moved}: {error}"))?;
                let back = true_url(mapper, &asked).unwrap_or_else(|| asked.as_str().to_owned());
                if back.split('#').next() != Some(truth) {
                    return Err(format!("{moved} leads to {back} instead of {truth}"));
                }
                let hash = case["hash"].as_str().unwrap_or_default();
                if asked.fragment().unwrap_or_default() != hash.trim_start_matches('#') {
                    return Err(format!("{moved} should have the fragment {hash}"));
                }
            }
            (Outcome::Moved(moved) | Outcome::Pinned(moved, _), None) if has_base => {
                return Err(format!("{moved} from what browsers do not accept"));
            }
            (Outcome::Left(Reason::Malformed), Some(href)) => return Err(format!("{href} is left as malformed")),
            (Outcome::Left(_) | Outcome::Moved(_) | Outcome::Pinned(..), _) => {}
        }
    }
    Ok(())
}

/// Returns the base of the case as a page of its own, and as a moved style sheet. Returns `None` if it is not an http
/// page.
fn bases(base: &str) -> Option<(Base, Base)> {
    let url = Url::parse(base).ok()?;
    let scheme = Scheme::from_name(url.scheme().as_bytes())?;
    let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let page = Base::new(scheme, authority, path)?;
    let named = if scheme == Scheme::Https { format!("/{authority}:443{path}") } else { format!("/{authority}{path}") };
    Some((page.clone(), page.on_proxy(Scheme::Https, "pep1.example.net", &named)?))
}

#[test]
fn every_url_of_the_platform_tests_survives_both_ways() {
    let Some(folder) = corpora("conformance/urltestdata") else { return };
    let text = std::fs::read_to_string(folder.join("url/tests/urltestdata.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mapper = mapper(Level::Full);
    let mut expected: BTreeSet<&str> = include_str!("../testdata/expected_failures.txt")
        .lines()
        .filter(|line| !line.starts_with("# ") && !line.is_empty())
        .collect();
    let mut problems = Vec::new();
    let mut checked = 0;
    for case in cases.iter().filter(|case| case["input"].is_string()) {
        checked += 1;
        let name = format!("{}\t{}", case["input"], case["base"]);
        match (check(&mapper, case), expected.remove(name.as_str())) {
            (Ok(()), false) | (Err(_), true) => {}
            (Ok(()), true) => problems.push(format!("unexpected success: {name}")),
            (Err(message), false) => problems.push(format!("{name}: {message}")),
        }
    }
    problems.extend(expected.into_iter().map(|name| format!("listed, but not in the file: {name}")));
    assert!(checked > 800, "only {checked} cases were found");
    assert!(problems.is_empty(), "{} of {checked}:\n{}", problems.len(), problems.join("\n"));
}
