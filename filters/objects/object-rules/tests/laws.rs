//! Laws of the rules, for header lists of common fields and of arbitrary bytes.

use std::time::{Duration, UNIX_EPOCH};

use http_semantics::{FieldList, Fields};
use object_rules::multipart::Multipart;
use object_rules::ranges::{self, Ranges};
use object_rules::{Life, Past, Use, conditions, storable, update, variant};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const NOW: u64 = 1_800_000_000;

fn fields(list: &FieldList) -> Fields<'_> {
    list.iter().map(|(name, value)| (&name[..], &value[..])).collect()
}

fn with(list: &FieldList, name: &str, value: &str) -> FieldList {
    let extra = (name.as_bytes().to_vec(), value.as_bytes().to_vec());
    list.iter().cloned().chain([extra]).collect()
}

fn says(list: &FieldList, directive: &str) -> bool {
    fields(list).lists("cache-control", directive)
}

/// Dates around [`NOW`].
fn date() -> impl Strategy<Value = String> {
    (0..2_000_000u64).prop_map(|ago| httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(NOW + 1_000_000 - ago)))
}

fn directive() -> impl Strategy<Value = String> {
    let bare = select(vec![
        "public",
        "private",
        "no-store",
        "no-cache",
        "must-revalidate",
        "proxy-revalidate",
        "must-understand",
        "only-if-cached",
        "max-stale",
        "x=\"a, public\"",
        "private=\"x\"",
    ]);
    let name =
        select(vec!["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error", "min-fresh", "max-stale"]);
    prop_oneof![
        bare.prop_map(str::to_owned),
        (name, 0..100_000u64).prop_map(|(name, seconds)| format!("{name}={seconds}")),
    ]
}

fn value(name: &'static str) -> BoxedStrategy<String> {
    match name {
        "cache-control" => vec(directive(), 0..4).prop_map(|list| list.join(", ")).boxed(),
        "date" | "last-modified" | "expires" | "if-modified-since" | "if-unmodified-since" => date().boxed(),
        "age" => (0..100_000u64).prop_map(|age| age.to_string()).boxed(),
        "etag" | "if-none-match" | "if-match" | "if-range" => {
            select(vec!["\"a\"", "W/\"a\"", "\"b\"", "\"a\", \"b\"", "*"]).prop_map(str::to_owned).boxed()
        }
        ":status" => select(vec!["200", "206", "302", "304", "404", "429", "503"]).prop_map(str::to_owned).boxed(),
        ":method" => select(vec!["GET", "HEAD", "POST"]).prop_map(str::to_owned).boxed(),
        ":path" => select(vec!["/", "/a?b"]).prop_map(str::to_owned).boxed(),
        "vary" => select(vec!["*", "accept", "accept-encoding, cookie"]).prop_map(str::to_owned).boxed(),
        "accept-encoding" => select(vec!["gzip", "br, gzip", "br", "identity;q=0"]).prop_map(str::to_owned).boxed(),
        "connection" => select(vec!["close", "etag, x", "cache-control"]).prop_map(str::to_owned).boxed(),
        _ => "[ -~]{0,12}".boxed(),
    }
}

fn list(names: &'static [&'static str]) -> impl Strategy<Value = FieldList> {
    let field = select(names).prop_flat_map(|name| value(name).prop_map(move |value| (name, value)));
    vec(field, 0..8)
        .prop_map(|list| list.into_iter().map(|(name, value)| (name.as_bytes().to_vec(), value.into_bytes())).collect())
}

fn request() -> impl Strategy<Value = FieldList> {
    list(&[
        ":method",
        ":path",
        "cache-control",
        "pragma",
        "cookie",
        "authorization",
        "if-none-match",
        "if-modified-since",
        "if-match",
        "if-unmodified-since",
        "if-range",
        "accept",
        "accept-encoding",
    ])
}

fn response() -> impl Strategy<Value = FieldList> {
    let rest = list(&[
        "cache-control",
        "date",
        "age",
        "expires",
        "last-modified",
        "etag",
        "vary",
        "set-cookie",
        "connection",
        "content-type",
        "content-length",
        "x",
    ]);
    (value(":status"), rest).prop_map(|(status, mut list)| {
        list.push((b":status".to_vec(), status.into_bytes()));
        list
    })
}

fn arbitrary() -> impl Strategy<Value = FieldList> {
    let name = prop_oneof![
        select(vec![
            ":method",
            ":status",
            ":path",
            ":authority",
            "cache-control",
            "vary",
            "etag",
            "range",
            "if-range",
            "age",
            "if-none-match",
            "location",
            "connection",
            "expires",
            "date",
            "last-modified",
            "accept-encoding",
        ])
        .prop_map(|name| name.as_bytes().to_vec()),
        vec(any::<u8>(), 0..8),
    ];
    let bytes = prop_oneof![vec(any::<u8>(), 0..24), "[bytes=0-9,\"*W/;q. \\\\]{0,24}".prop_map(String::into_bytes)];
    vec((name, bytes), 0..8)
}

fn life() -> impl Strategy<Value = Life> {
    let numbers = (0..2 * NOW, 0..1000u64, 0..1000u64, 0..1000u64, prop_oneof![Just(u64::MAX), 0..1000u64]);
    (numbers, any::<(bool, bool, bool)>()).prop_map(|(numbers, flags)| Life {
        received_s: numbers.0,
        initial_age_s: numbers.1,
        lifetime_s: numbers.2,
        stale_while_revalidate_s: numbers.3,
        stale_if_error_s: numbers.4,
        always_validate: flags.0,
        never_stale: flags.1,
        public: flags.2,
    })
}

/// Asks about everything. Returns nothing: the point is that it returns.
fn ask(request: &Fields<'_>, response: &Fields<'_>, now_s: u64, delay_s: u64) {
    if let Ok(life) = storable(request, response, now_s, delay_s) {
        life.allows(request, now_s);
        life.allows(request, u64::MAX);
    }
    conditions::not_modified(request, response);
    conditions::preconditions_hold(request, response);
    conditions::validators(response);
    ranges::requested(request, response, now_s);
    update::updated(request, response);
    update::matches(request, response);
    variant::values(request, &variant::names(response).unwrap_or_default());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn nothing_panics_on_arbitrary_bytes(one in arbitrary(), other in arbitrary(), now_s: u64, delay_s: u64) {
        ask(&fields(&one), &fields(&other), now_s, delay_s);
        ask(&fields(&other), &fields(&one), now_s, delay_s);
    }

    #[test]
    fn a_response_for_one_client_is_never_stored(request in request(), response in response(), delay_s in 0..99u64) {
        for (name, value, why) in [
            ("set-cookie", "a=b", Past::SetCookie),
            ("cache-control", "private", Past::Private),
            ("cache-control", "no-store", Past::NoStore),
        ] {
            // `must-understand` overrides `no-store` where the status is understood.
            if why == Past::NoStore && says(&response, "must-understand") {
                continue;
            }
            let marked = with(&response, name, value);
            prop_assert!(storable(&fields(&request), &fields(&marked), NOW, delay_s).is_err());
        }
        let asked = with(&request, "cache-control", "no-store");
        prop_assert!(storable(&fields(&asked), &fields(&response), NOW, delay_s).is_err());
    }

    #[test]
    fn a_client_with_credentials_shares_only_what_the_origin_shares(request in request(), response in response()) {
        let public = says(&response, "public") || says(&response, "s-maxage");
        let stored = storable(&fields(&request), &fields(&response), NOW, 0);
        if let Ok(life) = stored {
            prop_assert_eq!(life.public, public);
            prop_assert!(public || !fields(&request).has("cookie"));
            prop_assert!(public || !fields(&request).has("authorization") || says(&response, "must-revalidate"));
            for name in ["cookie", "authorization"] {
                let asked = with(&request, name, "a");
                let is_past = matches!(life.allows(&fields(&asked), NOW), Use::Past(_));
                prop_assert!(public || is_past);
            }
        }
    }

    #[test]
    fn a_stored_response_is_of_use(request in request(), response in response(), delay_s in 0..99u64) {
        if let Ok(life) = storable(&fields(&request), &fields(&response), NOW, delay_s) {
            let is_fresh = life.initial_age_s < life.lifetime_s + life.stale_while_revalidate_s;
            prop_assert!(is_fresh || fields(&response).has("etag") || fields(&response).has("last-modified"));
            prop_assert!(life.initial_age_s >= delay_s && life.lifetime_s <= 1 << 31);
            prop_assert!(!life.never_stale || (life.stale_if_error_s == 0 && life.stale_while_revalidate_s == 0));
        }
    }

    #[test]
    fn the_age_never_falls(life in life(), one: u64, other: u64) {
        let (early, late) = (one.min(other), one.max(other));
        prop_assert!(life.age_at_s(early) <= life.age_at_s(late));
        prop_assert!(life.age_at_s(early) >= life.initial_age_s);
    }

    #[test]
    fn a_response_that_is_stale_stays_stale(life in life(), after in 0..5000u64, later in 0..5000u64) {
        let none = Fields::default();
        let at = |after: u64| life.allows(&none, life.received_s + after);
        if at(after) != Use::Fresh {
            prop_assert!(at(after + later) != Use::Fresh);
        }
        if life.never_stale || life.always_validate {
            prop_assert!(!matches!(at(after), Use::StaleWhileRevalidate));
        }
    }

    #[test]
    fn a_request_never_gets_more_than_it_asks_for(life in life(), request in request(), after in 0..5000u64) {
        let now_s = life.received_s + after;
        let found = life.allows(&fields(&request), now_s);
        let narrower = life.allows(&fields(&with(&request, "cache-control", "no-cache")), now_s);
        let is_refused = matches!(narrower, Use::Validate { stale_on_error: false } | Use::Unavailable | Use::Past(_));
        prop_assert!(is_refused);
        let strict = Life { never_stale: true, ..life };
        if found == Use::Fresh && !says(&request, "max-stale") {
            prop_assert_eq!(strict.allows(&fields(&request), now_s), Use::Fresh);
        }
    }

    #[test]
    fn parts_lie_in_the_body_and_are_no_longer_than_it(
        specs in vec(prop_oneof!["[0-9]{1,3}-", "[0-9]{1,3}-[0-9]{1,3}", "-[0-9]{1,3}", "[0-9-]{0,4}"], 0..20),
        length in 0..1000u64,
    ) {
        let value = format!("bytes={}", specs.join(", "));
        let request = vec![(b"range".to_vec(), value.into_bytes())];
        if let Ranges::Parts(parts) = ranges::requested(&fields(&request), &Fields::default(), length) {
            prop_assert!(!parts.is_empty() && parts.len() <= ranges::MOST_RANGES);
            prop_assert!(parts.iter().all(|part| part.start < part.end && part.end <= length));
            let sum: u64 = parts.iter().map(|part| part.end - part.start).sum();
            prop_assert!(sum <= length);
            let frame = Multipart::new(7, Some(b"a/b"));
            let heads: usize = parts.iter().map(|part| frame.head(part, length).len()).sum();
            prop_assert_eq!(frame.length(&parts, length), sum + (heads + frame.end().len()) as u64);
        }
    }

    #[test]
    fn a_second_update_changes_nothing(stored in response(), fresh in response()) {
        let once = update::updated(&fields(&stored), &fields(&fresh));
        prop_assert_eq!(&update::updated(&fields(&once), &fields(&fresh)), &once);
        for name in ["etag", "content-type", "content-length", ":status"] {
            let before: Vec<_> = fields(&stored).all(name).collect();
            let named = fields(&stored).lists("connection", name);
            prop_assert!(named || fields(&once).all(name).collect::<Vec<_>>() == before);
        }
        prop_assert!(!fields(&once).has("connection"));
    }

    #[test]
    fn a_client_with_the_validators_gets_a_304(stored in response()) {
        let stored: FieldList = stored.into_iter().filter(|(name, _)| name != b":status").collect();
        let validating = conditions::validators(&fields(&stored));
        prop_assert_eq!(conditions::is_conditional(&fields(&validating)), !validating.is_empty());
        prop_assert_eq!(conditions::not_modified(&fields(&validating), &fields(&stored)), !validating.is_empty());
        let failed = with(&stored, ":status", "404");
        prop_assert!(!conditions::not_modified(&fields(&validating), &fields(&failed)));
    }

    #[test]
    fn the_order_of_other_fields_selects_no_other_variant(request in request()) {
        let names = vec![b"accept".to_vec(), b"accept-encoding".to_vec()];
        let mut moved = request.clone();
        moved.sort_by_key(|(name, _)| !names.contains(name));
        prop_assert_eq!(variant::values(&fields(&moved), &names), variant::values(&fields(&request), &names));
    }
}
