//! Profiles: the built-in ones are complete, and an invalid one is refused with the fault and its place.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

use std::num::NonZeroU64;
use std::time::Duration;

use longhaul_link::Way;
use longhaul_link::impairment::jitter::Shape;
use longhaul_link::impairment::outage::Kind;
use longhaul_link::profile::{BUILT_IN, Profile, load, parse};

const README: &str = include_str!("../README.md");

const PLAIN: &str = r#"title = "A link"
source = "made up for this test"
mtu_bytes = 1500
[down]
rate_bps = 1_000_000
delay_ms = 50
queue_bytes = 50_000
[up]
delay_ms = 20.5
queue_bytes = 1500
"#;

fn refusal(text: &str, overrides: &[&str]) -> String {
    let overrides: Vec<_> = overrides.iter().map(|text| (*text).to_owned()).collect();
    parse("test.toml", text, &overrides).expect_err("it was accepted").to_string()
}

fn rate_and_round_trip(profile: &Profile) -> (u64, u64, Duration) {
    let bps = |rate: Option<longhaul_link::impairment::rate::Rate>| rate.map_or(0, |rate| rate.bits_per_second.get());
    (bps(profile.down.rate), bps(profile.up.rate), profile.down.delay + profile.up.delay)
}

#[test]
fn the_links_of_the_papers_and_of_today_have_the_numbers_they_are_known_by() {
    let expected = [
        ("geo", 20_000_000, 5_000_000, 600),
        ("maritime", 2_000_000, 500_000, 700),
        ("rural-lte", 8_000_000, 2_000_000, 80),
        ("leo", 100_000_000, 10_000_000, 40),
        ("cdma-average", 78_000, 40_000, 400),
        ("cdma-congested", 56_000, 30_000, 600),
        ("gprs", 33_200, 11_200, 1000),
        ("umts", 384_000, 64_000, 300),
        ("satellite-256k", 256_000, 256_000, 600),
        ("satellite-500k", 500_000, 500_000, 600),
        ("satellite-2m", 2_000_000, 2_000_000, 600),
    ];
    assert_eq!(BUILT_IN.iter().map(|(name, _)| *name).collect::<Vec<_>>(), expected.map(|(name, ..)| name));
    for (name, down_bps, up_bps, round_trip_ms) in expected {
        let profile = load(name, &[]).unwrap();
        let numbers = rate_and_round_trip(&profile);
        assert_eq!(numbers, (down_bps, up_bps, Duration::from_millis(round_trip_ms)), "{name}");
        assert!(profile.source.len() > 40, "{name} does not say where its numbers come from");
    }
    assert_eq!(load("cdma-congested", &[]).unwrap().down.queue_bytes, 60_000);
}

#[test]
fn every_impairment_can_be_written() {
    let text = format!(
        "{PLAIN}jitter = {{ amount_ms = 5, shape = \"bell\" }}\nrandom_loss = 0.01\n\
         burst_loss = {{ enter_bad = 0.01, leave_bad = 0.3 }}\nreordering = {{ probability = 0.1, held_back_ms = 8 }}\n\
         duplication = 0.001\n[[outage]]\nstart_s = 60\nlength_s = 5\nevery_s = 300\nkind = \"drop\"\naffects = \"down\"\n"
    );
    let profile = parse("test.toml", &text, &[]).unwrap();
    assert_eq!(profile.up.rate, None);
    assert_eq!(profile.up.delay, Duration::from_micros(20_500));
    assert_eq!(
        profile.up.jitter.map(|jitter| (jitter.amount, jitter.shape)),
        Some((Duration::from_millis(5), Shape::Bell))
    );
    assert_eq!(profile.up.burst_loss.map(|bursts| (bursts.loss_in_good, bursts.loss_in_bad)), Some((0.0, 1.0)));
    assert_eq!(profile.up.random_loss, Some(0.01));
    assert_eq!(profile.down.random_loss, None);
    let (affects, outage) = profile.outages[0];
    assert!(affects.includes(Way::Down) && !affects.includes(Way::Up));
    assert_eq!((outage.kind, outage.every), (Kind::Drop, Some(Duration::from_mins(5))));
}

#[test]
fn the_profile_in_the_readme_is_one_and_shows_every_key() {
    let (_, rest) = README.split_once("```toml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    let profile = parse("README.md", text, &[]).unwrap();
    let down = profile.down;
    assert!(down.rate.is_some() && down.jitter.is_some() && down.random_loss.is_some() && down.burst_loss.is_some());
    assert!(down.reordering.is_some() && down.duplication.is_some() && profile.outages[0].1.every.is_some());
}

#[test]
fn the_readme_names_every_profile() {
    for (name, _) in BUILT_IN {
        assert!(README.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn an_unknown_key_is_refused_with_its_line_and_what_is_allowed() {
    let message = refusal(&PLAIN.replace("delay_ms = 50", "delay = 50"), &[]);
    assert!(message.contains("test.toml") && message.contains("line 6"), "{message}");
    assert!(message.contains("unknown field `delay`") && message.contains("`delay_ms`"), "{message}");
}

#[test]
fn a_value_out_of_range_is_refused_with_its_line_and_what_is_expected() {
    let message = refusal(&format!("{PLAIN}random_loss = 5"), &[]);
    assert!(message.contains("line 11") && message.contains("5 is not a probability"), "{message}");
    let message = refusal(&PLAIN.replace("delay_ms = 50", "delay_ms = -1"), &[]);
    assert!(message.contains("line 6") && message.contains("not a time a link can have"), "{message}");
    let message = refusal(&PLAIN.replace("rate_bps = 1_000_000", "rate_bps = 0"), &[]);
    assert!(message.contains("line 5"), "{message}");
}

#[test]
fn values_that_contradict_each_other_are_refused_by_name() {
    for (overrides, expected) in [
        (&["down.queue_bytes = 1499"][..], "down.queue_bytes = 1499"),
        (&["up.jitter = { amount_ms = 21 }"], "up.jitter.amount_ms is more than up.delay_ms"),
        (&["outage = [{ start_s = 1, length_s = 5, every_s = 5 }]"], "outage.every_s"),
        (&["mtu_bytes = 40"], "mtu_bytes = 40"),
        (&["source = ' '"], "say where the numbers come from"),
    ] {
        let message = refusal(PLAIN, overrides);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn an_override_changes_one_value_and_leaves_the_others() {
    let overrides = ["down.rate_bps = 35000".to_owned(), "down.delay_ms=1".to_owned()];
    let changed = parse("test.toml", PLAIN, &overrides).unwrap();
    let plain = parse("test.toml", PLAIN, &[]).unwrap();
    assert_eq!(changed.down.rate.map(|rate| rate.bits_per_second), NonZeroU64::new(35_000));
    assert_eq!(changed.down.delay, Duration::from_millis(1));
    assert_eq!((changed.down.queue_bytes, changed.up), (plain.down.queue_bytes, plain.up));
}

#[test]
fn an_override_that_is_not_one_is_refused() {
    for wrong in ["down.rate_bps", "", "down.rate_bps = fast"] {
        let message = refusal(PLAIN, &[wrong]);
        assert!(message.contains("expected KEY=VALUE"), "{message}");
    }
    let message = refusal(PLAIN, &["down.speed = 5"]);
    assert!(message.contains("unknown field `speed`"), "{message}");
}

#[test]
fn an_unknown_name_is_refused_with_the_known_ones_and_a_missing_file_by_its_path() {
    let message = load("moon", &[]).unwrap_err().to_string();
    assert!(message.contains("`moon`") && message.contains("cdma-congested"), "{message}");
    let message = load("no/such/file.toml", &[]).unwrap_err().to_string();
    assert!(message.contains("no/such/file.toml"), "{message}");
}
