//! Tests `testdata/vectors.json`: examples of the map in both directions, for programs in any language.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // our own JSON

mod common;

use common::true_url;
use serde_json::Value;
use url::Url;
use url_mapping::{Base, Level, Mapper, Outcome, Reverse, Rules, Scheme, Use};

fn vectors() -> (Value, Mapper, Base) {
    let vectors: Value = serde_json::from_str(include_str!("../testdata/vectors.json")).unwrap();
    let rules = &vectors["rules"];
    let strings = |key: &str| -> Vec<String> { serde_json::from_value(rules[key].clone()).unwrap() };
    let level: Level = serde_json::from_value(rules["level"].clone()).unwrap();
    let mapper = Mapper::new(&Rules {
        https_targets: strings("https_targets"),
        http_targets: vec![],
        own: strings("own"),
        level,
        exclude: strings("exclude"),
        ports: serde_json::from_value(rules["ports"].clone()).unwrap(),
        url_bytes: 8192,
    })
    .unwrap();
    let page = Url::parse(vectors["page"].as_str().unwrap()).unwrap();
    let base = Base::new(Scheme::Http, page.host_str().unwrap(), page.path()).unwrap();
    (vectors, mapper, base)
}

fn each<'a>(vectors: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    vectors[list].as_array().unwrap().iter()
}

#[test]
fn moved_urls_map_back() {
    let (vectors, mapper, base) = vectors();
    for case in each(&vectors, "moved") {
        let moved = case["moved"].as_str().unwrap();
        let outcome = mapper.forward(&base, case["reference"].as_str().unwrap(), Use::Image);
        assert_eq!(outcome, Outcome::Moved(moved.to_owned()), "{case}");
        assert_eq!(true_url(&mapper, &Url::parse(moved).unwrap()).as_deref(), case["true"].as_str(), "{case}");
    }
}

#[test]
fn urls_that_stay_or_are_refused_have_a_reason() {
    let (vectors, mapper, base) = vectors();
    for case in each(&vectors, "left") {
        match mapper.forward(&base, case["reference"].as_str().unwrap(), Use::Image) {
            Outcome::Left(reason) => assert_eq!(Some(reason.as_str()), case["reason"].as_str(), "{case}"),
            outcome => unreachable!("{case}: {outcome:?}"),
        }
    }
    for case in each(&vectors, "refused") {
        match mapper.reverse(b"pep.example.net", case["path"].as_str().unwrap().as_bytes()) {
            Reverse::Refused(refusal) => assert_eq!(Some(refusal.as_str()), case["reason"].as_str(), "{case}"),
            outcome => unreachable!("{case}: {outcome:?}"),
        }
    }
}
