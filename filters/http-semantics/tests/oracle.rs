//! Compares the rule with another implementation of RFC 9111 where both decide the same question.

#![allow(clippy::unwrap_used)] // a test
use std::time::{Duration, SystemTime};

use http_cache_semantics::{CacheOptions, CachePolicy};
use http_semantics::{Fields, Purpose, Unshared, shareable};
use proptest::prelude::*;

/// Sat, 21 Nov 2026 13:00:00 GMT
const NOW: Duration = Duration::from_hours(498_685);
const DATE: &str = "Sat, 21 Nov 2026 13:00:00 GMT";

type List = Vec<(&'static str, String)>;

/// A shared cache without heuristic freshness, as ours is.
fn oracle(request: &List, status: u16, response: &List) -> (bool, u64) {
    let now = SystemTime::UNIX_EPOCH + NOW;
    let mut asked = http::Request::get("http://a.test/");
    for (name, value) in request {
        asked = asked.header(*name, value);
    }
    let mut said = http::Response::builder().status(status);
    for (name, value) in response {
        said = said.header(*name, value);
    }
    let none = Duration::ZERO;
    let options = CacheOptions { cache_heuristic: 0.0, immutable_min_time_to_live: none, ..CacheOptions::default() };
    let policy = CachePolicy::new_options(&asked.body(()).unwrap(), &said.body(()).unwrap(), now, options);
    (policy.is_storable(), policy.time_to_live(now).as_secs())
}

fn directive() -> impl Strategy<Value = String> {
    // In lower case, because the oracle's comparison is case-sensitive.
    const WORDS: [&str; 6] = ["public", "private", "no-store", "no-cache", "must-revalidate", "immutable"];
    prop_oneof![
        prop::sample::select(&WORDS[..]).prop_map(str::to_owned),
        (0_u32..200).prop_map(|seconds| format!("max-age={seconds}")),
        (0_u32..200).prop_map(|seconds| format!("s-maxage={seconds}")),
    ]
}

fn response() -> impl Strategy<Value = List> {
    let expires = prop::sample::select(&["Sat, 21 Nov 2026 13:01:00 GMT", "Sat, 21 Nov 2026 12:59:00 GMT", "0"][..]);
    let cache_control = prop::option::weighted(0.9, prop::collection::vec(directive(), 1..4));
    let age = prop::option::weighted(0.3, 0_u32..100);
    (cache_control, age, prop::option::weighted(0.3, expires)).prop_map(|(cache_control, age, expires)| {
        let mut list = vec![("date", DATE.to_owned())];
        list.extend(cache_control.map(|directives| ("cache-control", directives.join(", "))));
        list.extend(age.map(|age| ("age", age.to_string())));
        list.extend(expires.map(|expires| ("expires", expires.to_owned())));
        list
    })
}

fn request() -> impl Strategy<Value = List> {
    let field = prop::sample::select(&[("authorization", "Basic YTpi"), ("cookie", "a=b"), ("accept", "*/*")][..]);
    prop::collection::vec(field.prop_map(|(name, value)| (name, value.to_owned())), 0..2)
}

fn says_a_number_twice(response: &List) -> bool {
    let twice = |value: &str, name: &str| value.matches(name).count() > 1;
    response.iter().any(|(_, value)| twice(value, "max-age=") || twice(value, "s-maxage="))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shared_responses_may_be_stored_and_are_fresh_for_no_longer(
        request in request(), status in prop::sample::select(&[200_u16, 203, 301, 404, 410][..]), response in response(),
    ) {
        let code = status.to_string();
        let pairs = |list: &'_ List| list.iter().map(|(name, value)| (*name, value.clone())).collect::<Vec<_>>();
        let (asked, mut said) = (pairs(&request), pairs(&response));
        said.push((":status", code));
        let asked: Fields<'_> = asked.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        let said: Fields<'_> = said.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        let ours = shareable(Purpose::Store, &asked, &said, SystemTime::UNIX_EPOCH + NOW);
        let (is_storable, left) = oracle(&request, status, &response);
        match ours {
            Ok(fresh) => {
                prop_assert!(is_storable, "the oracle does not store it");
                prop_assert!(fresh.left <= left, "fresh for {} s, but {left} s in the oracle", fresh.left);
            }
            // Deliberately stricter than the standard.
            Err(Unshared::Cookie) => {}
            // The oracle reads a repeated directive differently.
            Err(_) if says_a_number_twice(&response) => {}
            Err(why) => prop_assert!(!is_storable || left == 0, "{why:?}, but fresh for {left} s in the oracle"),
        }
    }
}
