//! From counters and connections to the explanation, at an edge and at a ground, with figures as their programs count them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::net::Ipv4Addr;
use std::time::Duration;

use super::reading::Reading;
use super::sampler::{Moment, Sampler};
use super::{Cause, Verdict, Way, Why, explain};
use crate::measure::{Connection, tests_connection};
use crate::scrape::Scrape;

const ROUND_TRIP_US: u32 = 600_000;
/// The pause of `longhaul run` between two looks at the connections.
const STEP: Duration = Duration::from_secs(4);

/// A minute: the bytes to clients, and the median times of a query, a connection and a first byte.
#[derive(Clone, Copy)]
struct Day {
    bytes: u64,
    lookup_s: f64,
    connect_ms: u64,
    first_byte_ms: u64,
    rtt_us: u32,
}

/// A minute on a link of 600 ms that nothing slows.
const GOOD: Day = Day { bytes: 9_000_000, lookup_s: 0.02, connect_ms: 25, first_byte_ms: 100, rtt_us: 610_000 };

/// Counters of Envoy and CoreDNS as they serve them, after `requests` requests.
fn reading(role: &str, day: Day, requests: u64) -> Reading {
    let Day { bytes, lookup_s, connect_ms, first_byte_ms, .. } = day;
    let ways = match role {
        "edge" => "envoy_http_downstream_cx_tx_bytes_total{envoy_http_conn_manager_prefix=\"edge_http\"} ",
        _ => "envoy_tcp_downstream_cx_tx_bytes_total{envoy_tcp_prefix=\"bytes_ship\"} ",
    };
    let buckets = |name: &str, labels: &str, le: &str| {
        format!("{name}_bucket{{{labels}le=\"{le}\"}} {requests}\n{name}_bucket{{{labels}le=\"+Inf\"}} {requests}\n")
    };
    let envoy = [
        format!("{ways}{}\n", bytes * requests / 40),
        buckets("envoy_cluster_upstream_cx_connect_ms", "envoy_cluster_name=\"origin_tcp\",", &connect_ms.to_string()),
        buckets("envoy_longhaul_origin_first_byte_ms", "", &first_byte_ms.to_string()),
    ];
    let coredns = buckets("coredns_proxy_request_duration_seconds", "proxy_name=\"forward\",", &lookup_s.to_string());
    let mut made = Reading::of_envoy(role, &Scrape::parse(&envoy.concat()));
    made.add_coredns(role, &Scrape::parse(&coredns));
    made.requests = requests;
    made
}

fn connection(last: u8, day: Day, segments: u32) -> Connection {
    let mut one = tests_connection(u16::from(last));
    one.id.remote = (Ipv4Addr::new(192, 0, 2, last), 5000).into();
    Connection {
        rtt_us: day.rtt_us,
        min_rtt_us: Some(ROUND_TRIP_US),
        data_segments: segments,
        acknowledged_ms_ago: 10,
        ..one
    }
}

/// Returns the explanation of a box with `role` after a minute of `day`, with `ends` at the other end of the link.
fn explained(role: &str, ends: u8, day: Day) -> Why {
    let is_alone = role == "edge";
    let mut sampler = Sampler::new(is_alone);
    for step in 0..=15 {
        let link: Vec<Connection> = (1..=ends).map(|last| connection(last, day, 100 * step)).collect();
        sampler.hear(STEP * step, Moment { link: &link, clients: &[] });
        sampler.read(STEP * step, reading(role, day, u64::from(step) * 40 / 15));
    }
    let way = Way { is_alone, rtt_us: 600_000, down_bps: 20_000_000, up_bps: 5_000_000 };
    explain(&sampler.measured(), &way).expect("there are figures")
}

fn causes(why: &Why) -> Vec<Cause> {
    why.causes().map(|part| part.cause).collect()
}

#[test]
fn an_edge_names_its_own_way_to_the_origins_and_counts_three_round_trips() {
    let good = explained("edge", 9, GOOD);
    assert_eq!((good.verdict, causes(&good)), (Verdict::Healthy, vec![]), "{good:?}");
    let round_trip = good.parts.iter().find(|part| part.cause == Cause::RoundTrip).unwrap();
    assert_eq!(round_trip.time_us, 3 * u64::from(ROUND_TRIP_US));
    assert_eq!((good.measured.over_s, good.measured.peers, good.measured.clients.seen), (60, 9, 9));

    let far = explained("edge", 9, Day { connect_ms: 250, first_byte_ms: 250, ..GOOD });
    assert_eq!(causes(&far), [Cause::Place]);
    assert!(far.sentence.starts_with("The way from this box to the origins takes more time"), "{}", far.sentence);
    let waits = explained("edge", 9, Day { rtt_us: 1_000_000, ..GOOD });
    assert_eq!(causes(&waits), [Cause::Queue]);
    let full = explained("edge", 9, Day { bytes: 140_000_000, ..GOOD });
    assert_eq!(causes(&full), [Cause::Rate]);
}

#[test]
fn a_ground_names_its_resolver_and_its_origins_and_counts_one_round_trip() {
    let good = explained("ground", 1, GOOD);
    assert_eq!((good.verdict, causes(&good)), (Verdict::Healthy, vec![]), "{good:?}");
    let round_trip = good.parts.iter().find(|part| part.cause == Cause::RoundTrip).unwrap();
    assert_eq!(round_trip.time_us, u64::from(ROUND_TRIP_US));
    assert_eq!(good.measured.clients.seen, 0, "clients are beyond the remote");

    let slow = explained("ground", 1, Day { lookup_s: 0.8, first_byte_ms: 2500, ..GOOD });
    assert_eq!(causes(&slow), [Cause::Origin, Cause::Resolver]);
    let far = explained("ground", 1, Day { connect_ms: 250, first_byte_ms: 250, ..GOOD });
    assert!(far.sentence.starts_with("The way from the ground to the origins takes more time"), "{}", far.sentence);
}
