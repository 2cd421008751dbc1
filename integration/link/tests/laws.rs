//! Laws of one direction of the link, on virtual time. They hold for any profile and any arrivals. Laws of a single
//! impairment stand beside it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::time::Duration;

use longhaul_link::Way;
use longhaul_link::counters::DropCause;
use longhaul_link::direction::{Delivery, Direction, Offer};
use longhaul_link::impairment::burst_loss::Bursts;
use longhaul_link::impairment::fair_queue::FairBy;
use longhaul_link::impairment::handover::{Handover, Range};
use longhaul_link::impairment::jitter::Shape;
use longhaul_link::impairment::outage::{Kind, Outage};
use longhaul_link::impairment::rate::Rate;
use longhaul_link::profile::{DirectionProfile, JitterProfile, ReorderingProfile};
use longhaul_link::random::Seed;
use longhaul_link::time::Moment;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

const MTU_BYTES: usize = 1500;

/// A packet offered some time after the one before it.
#[derive(Clone, Debug)]
struct Arrival {
    gap: Duration,
    length: usize,
}

/// Returns a packet that carries its number, so that the other end can identify it.
fn numbered(number: usize, length: usize) -> Vec<u8> {
    let mut packet = vec![0; length];
    packet[..4].copy_from_slice(&u32::try_from(number).unwrap().to_be_bytes());
    packet
}

fn number_of(packet: &[u8]) -> usize {
    u32::from_be_bytes(packet[..4].try_into().unwrap()) as usize
}

/// The result of a run.
struct Run {
    offered: BTreeMap<usize, Moment>,
    dropped_at_once: BTreeMap<usize, DropCause>,
    deliveries: Vec<Delivery>,
    direction: Direction,
}

impl Run {
    fn numbers(&self) -> Vec<usize> {
        self.deliveries.iter().map(|delivery| number_of(&delivery.packet)).collect()
    }
}

/// Runs a direction as the engine does: only arrivals and the moments that the direction itself names wake it.
fn run(mut direction: Direction, arrivals: &[Arrival]) -> Run {
    let mut offered = BTreeMap::new();
    let mut dropped_at_once = BTreeMap::new();
    let mut deliveries = Vec::new();
    let mut now = Moment::START;
    for (number, arrival) in arrivals.iter().enumerate() {
        let arrives = now + arrival.gap;
        wake_until(&mut direction, arrives, &mut deliveries);
        now = arrives;
        offered.insert(number, now);
        if let Offer::Dropped(cause) = direction.offer(now, numbered(number, arrival.length)) {
            dropped_at_once.insert(number, cause);
        }
    }
    wake_until(&mut direction, Moment::from_nanos(u64::MAX), &mut deliveries);
    Run { offered, dropped_at_once, deliveries, direction }
}

fn wake_until(direction: &mut Direction, end: Moment, deliveries: &mut Vec<Delivery>) {
    while let Some(moment) = direction.next_event().filter(|moment| *moment <= end) {
        deliveries.extend(std::iter::from_fn(|| direction.deliver(moment)));
    }
}

fn plain(rate_bps: u64, delay: Duration, queue_bytes: usize) -> DirectionProfile {
    DirectionProfile {
        rate: NonZeroU64::new(rate_bps).map(|bits_per_second| Rate { bits_per_second, frame_overhead_bytes: 0 }),
        delay,
        queue_bytes,
        fair: None,
        jitter: None,
        random_loss: None,
        burst_loss: None,
        reordering: None,
        duplication: None,
        handover: None,
    }
}

fn direction(profile: &DirectionProfile, seed: u64) -> Direction {
    Direction::new(Way::Down, profile, Vec::new(), MTU_BYTES, Seed(seed))
}

prop_compose! {
    fn any_rate()(bits_per_second in 10_000u64..1_000_000_000, frame_overhead_bytes in 0u32..40) -> Rate {
        Rate { bits_per_second: NonZeroU64::new(bits_per_second).unwrap(), frame_overhead_bytes }
    }
}

prop_compose! {
    /// A link with only a queue, a rate and a delay.
    fn any_plain()(
        rate in option::weighted(0.9, any_rate()),
        delay_ms in 0u64..1_000,
        queue_bytes in MTU_BYTES..100_000,
    ) -> DirectionProfile {
        DirectionProfile { rate, ..plain(0, Duration::from_millis(delay_ms), queue_bytes) }
    }
}

fn any_shape() -> impl Strategy<Value = Shape> {
    prop_oneof![Just(Shape::Uniform), Just(Shape::Bell)]
}

prop_compose! {
    /// A link with every impairment except reordering and duplication.
    fn any_in_order()(
        profile in any_plain(),
        jitter_share in option::of(0.0..1.0f64),
        shape in any_shape(),
        random_loss in option::of(0.0..0.5f64),
        burst_loss in option::of((0.0..0.2f64, 0.1..1.0f64)),
    ) -> DirectionProfile {
        DirectionProfile {
            jitter: jitter_share.map(|share| JitterProfile { amount: profile.delay.mul_f64(share), shape }),
            random_loss,
            burst_loss: burst_loss.map(|(enter_bad, leave_bad)| Bursts {
                enter_bad, leave_bad, loss_in_good: 0.0, loss_in_bad: 0.9,
            }),
            ..profile
        }
    }
}

prop_compose! {
    fn any_profile()(
        profile in any_in_order(),
        reordering in option::of((0.0..0.5f64, 0u64..100)),
        duplication in option::of(0.0..0.5f64),
    ) -> DirectionProfile {
        DirectionProfile {
            reordering: reordering.map(|(probability, millis)| ReorderingProfile {
                probability, held_back: Duration::from_millis(millis),
            }),
            duplication,
            ..profile
        }
    }
}

prop_compose! {
    fn any_outage()(
        start_ms in 0u64..500,
        length_ms in 1u64..400,
        rest_ms in option::of(1u64..400),
        drops in any::<bool>(),
    ) -> Outage {
        Outage {
            start: Moment::after_start(Duration::from_millis(start_ms)),
            length: Duration::from_millis(length_ms),
            every: rest_ms.map(|rest| Duration::from_millis(length_ms + rest)),
            kind: if drops { Kind::Drop } else { Kind::Hold },
        }
    }
}

prop_compose! {
    /// Hand-overs that come soon enough for a few hundred packets to meet them.
    fn any_handover()(
        gap_ms in (0u64..40, 0u64..40),
        rest_ms in 1u64..400,
        extra_delay_ms in (0u64..50, 0u64..50),
        drops in any::<bool>(),
    ) -> Handover {
        let range = |(least, more): (u64, u64)| Range {
            least: Duration::from_millis(least), most: Duration::from_millis(least + more),
        };
        let gap = range(gap_ms);
        Handover {
            every: gap.most + Duration::from_millis(rest_ms),
            gap,
            extra_delay: range(extra_delay_ms),
            kind: if drops { Kind::Drop } else { Kind::Hold },
        }
    }
}

/// Generates bursts and pauses.
fn any_arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![Just(0u64), 0u64..2_000_000, 0u64..200_000_000].prop_map(Duration::from_nanos);
    vec((gap, 40usize..=MTU_BYTES).prop_map(|(gap, length)| Arrival { gap, length }), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_rate_is_never_exceeded(rate in any_rate(), profile in any_plain(), arrivals in any_arrivals()) {
        let profile = DirectionProfile { rate: Some(rate), ..profile };
        let run = run(direction(&profile, 1), &arrivals);
        for pair in run.deliveries.windows(2) {
            let gap = pair[1].due.since(pair[0].due);
            prop_assert!(gap >= rate.serialisation(pair[1].packet.len()), "{:?} between two packets", gap);
        }
    }

    #[test]
    fn a_packet_takes_its_delay_and_its_own_transmission_at_least(
        rate in any_rate(), profile in any_plain(), arrivals in any_arrivals(),
    ) {
        let profile = DirectionProfile { rate: Some(rate), ..profile };
        for delivery in &run(direction(&profile, 1), &arrivals).deliveries {
            let least = profile.delay + rate.serialisation(delivery.packet.len());
            prop_assert!(delivery.due.since(delivery.offered) >= least);
        }
    }

    #[test]
    fn the_queue_never_holds_more_than_its_limit_and_no_packet_waits_longer_than_it_takes_to_send_it(
        rate_bps in 10_000u64..100_000_000, queue_bytes in MTU_BYTES..60_000, arrivals in any_arrivals(),
    ) {
        let profile = plain(rate_bps, Duration::from_millis(50), queue_bytes);
        let run = run(direction(&profile, 1), &arrivals);
        prop_assert!(run.direction.queue_levels().highest_bytes <= queue_bytes);
        // Each packet's transmission is rounded up to a nanosecond.
        let rounding = Duration::from_nanos(run.deliveries.len() as u64);
        let longest = profile.rate.unwrap().serialisation(queue_bytes) + profile.delay + rounding;
        for delivery in &run.deliveries {
            prop_assert!(delivery.due.since(delivery.offered) <= longest);
        }
    }

    #[test]
    fn a_packet_is_dropped_at_the_queue_only_when_it_does_not_fit(
        rate in any_rate(), queue_bytes in MTU_BYTES..20_000, arrivals in any_arrivals(),
    ) {
        let profile = DirectionProfile { rate: Some(rate), ..plain(0, Duration::ZERO, queue_bytes) };
        let run = run(direction(&profile, 1), &arrivals);
        let due: BTreeMap<usize, Moment> =
            run.deliveries.iter().map(|delivery| (number_of(&delivery.packet), delivery.due)).collect();
        for (number, cause) in &run.dropped_at_once {
            prop_assert_eq!(*cause, DropCause::QueueFull);
            // Packets accepted earlier and still unsent when this one came.
            let held: usize = due
                .iter()
                .filter(|(earlier, due)| *earlier < number && **due > run.offered[number])
                .map(|(earlier, _)| arrivals[*earlier].length)
                .sum();
            prop_assert!(held + arrivals[*number].length > queue_bytes, "{} bytes held, yet dropped", held);
        }
    }

    #[test]
    fn the_order_is_kept_unless_reordering_is_asked_for(
        profile in any_in_order(), arrivals in any_arrivals(), seed in any::<u64>(),
    ) {
        let numbers = run(direction(&profile, seed), &arrivals).numbers();
        prop_assert!(numbers.is_sorted());
    }

    #[test]
    fn every_packet_is_accounted_for_once(
        profile in any_profile(), outages in vec(any_outage(), 0..3), arrivals in any_arrivals(), seed in any::<u64>(),
    ) {
        let direction = Direction::new(Way::Up, &profile, outages, MTU_BYTES, Seed(seed));
        let run = run(direction, &arrivals);
        let counters = run.direction.counters();
        let dropped = &counters.dropped;
        let lost = dropped.random_loss.packets + dropped.burst_loss.packets + dropped.outage.packets;
        prop_assert_eq!(counters.offered.packets, arrivals.len() as u64);
        prop_assert_eq!(counters.offered.packets, counters.carried.packets + dropped.queue_full.packets);
        prop_assert_eq!(counters.carried.packets + counters.duplicated_packets, counters.delivered.packets + lost);
        prop_assert_eq!(counters.delivered.packets, run.deliveries.len() as u64);
        prop_assert_eq!(dropped.queue_full.packets, run.dropped_at_once.len() as u64);
        let bytes: usize = run.deliveries.iter().map(|delivery| delivery.packet.len()).sum();
        prop_assert_eq!(counters.delivered.bytes, bytes as u64);
        prop_assert_eq!(run.direction.in_flight_packets(), 0);
        for delivery in &run.deliveries {
            prop_assert_eq!(delivery.packet.len(), arrivals[number_of(&delivery.packet)].length);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_schedule_however_often_the_clock_is_looked_at(
        profile in any_profile(), outages in vec(any_outage(), 0..3), arrivals in any_arrivals(), seed in any::<u64>(),
        late_by_ms in 0u64..300,
    ) {
        let new = || Direction::new(Way::Down, &profile, outages.clone(), MTU_BYTES, Seed(seed));
        let prompt = run(new(), &arrivals).deliveries;
        // A caller that is late with everything except the arrivals, and does not call between them.
        let mut late = new();
        let mut now = Moment::START;
        let mut deliveries = Vec::new();
        for (number, arrival) in arrivals.iter().enumerate() {
            now = now + arrival.gap;
            late.offer(now, numbered(number, arrival.length));
            if number % 7 == 0 {
                deliveries.extend(std::iter::from_fn(|| late.deliver(now)));
            }
        }
        while let Some(next) = late.next_event() {
            let moment = next + Duration::from_millis(late_by_ms);
            deliveries.extend(std::iter::from_fn(|| late.deliver(moment)));
        }
        prop_assert_eq!(prompt, deliveries);
    }

    #[test]
    fn a_caller_woken_when_the_direction_says_is_never_late(profile in any_profile(), arrivals in any_arrivals()) {
        let run = run(direction(&profile, 5), &arrivals);
        let lateness = run.direction.counters().lateness.summary();
        prop_assert!(lateness.is_none_or(|lateness| lateness.max_ms <= 0.0));
    }

    #[test]
    fn the_fate_of_a_packet_does_not_depend_on_which_other_impairments_are_on(
        profile in any_in_order(), arrivals in any_arrivals(), seed in any::<u64>(),
    ) {
        let lossy = DirectionProfile { random_loss: Some(0.2), burst_loss: None, ..profile };
        let only_lossy = DirectionProfile { jitter: None, ..lossy.clone() };
        let all: BTreeSet<_> = run(direction(&lossy, seed), &arrivals).numbers().into_iter().collect();
        let alone: BTreeSet<_> = run(direction(&only_lossy, seed), &arrivals).numbers().into_iter().collect();
        prop_assert_eq!(all, alone);
    }

    #[test]
    fn a_lost_packet_has_used_its_time_on_the_air(
        rate in any_rate(), profile in any_plain(), arrivals in any_arrivals(), seed in any::<u64>(),
    ) {
        let clear = DirectionProfile { rate: Some(rate), ..profile };
        let lossy = DirectionProfile { random_loss: Some(0.3), ..clear.clone() };
        let clear = run(direction(&clear, seed), &arrivals);
        let lossy = run(direction(&lossy, seed), &arrivals);
        prop_assert_eq!(lossy.direction.counters().busy, clear.direction.counters().busy);
        for delivery in &lossy.deliveries {
            prop_assert!(clear.deliveries.contains(delivery), "a loss changed when another packet arrives");
        }
    }

    #[test]
    fn a_holding_outage_loses_nothing_and_nothing_begins_to_be_sent_in_it(
        rate in any_rate(), outage in any_outage(), arrivals in any_arrivals(),
    ) {
        let outage = Outage { kind: Kind::Hold, every: None, ..outage };
        let profile = DirectionProfile { rate: Some(rate), ..plain(0, Duration::ZERO, 1_000_000) };
        let direction = Direction::new(Way::Up, &profile, vec![outage], MTU_BYTES, Seed(1));
        let run = run(direction, &arrivals);
        prop_assert_eq!(run.deliveries.len(), arrivals.len());
        for delivery in &run.deliveries {
            let on_air = rate.serialisation(delivery.packet.len());
            let began = Moment::from_nanos(delivery.due.as_nanos() - u64::try_from(on_air.as_nanos()).unwrap());
            prop_assert!(began < outage.start || began >= outage.start + outage.length);
        }
    }

    #[test]
    fn a_dropping_outage_loses_exactly_what_leaves_in_it(
        rate in any_rate(), outage in any_outage(), arrivals in any_arrivals(),
    ) {
        let outage = Outage { kind: Kind::Drop, every: None, ..outage };
        let profile = DirectionProfile { rate: Some(rate), ..plain(0, Duration::ZERO, 1_000_000) };
        let clear = run(Direction::new(Way::Up, &profile, Vec::new(), MTU_BYTES, Seed(1)), &arrivals);
        let away = run(Direction::new(Way::Up, &profile, vec![outage], MTU_BYTES, Seed(1)), &arrivals);
        let outside = |delivery: &&Delivery| {
            delivery.due < outage.start || delivery.due >= outage.start + outage.length
        };
        let expected: Vec<_> = clear.deliveries.iter().filter(outside).cloned().collect();
        prop_assert_eq!(away.deliveries, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_packet_takes_the_delay_of_its_path_and_the_order_is_kept(
        handover in any_handover(), profile in any_plain(), arrivals in any_arrivals(),
    ) {
        let profile = DirectionProfile { handover: Some(handover), ..profile };
        let run = run(direction(&profile, 1), &arrivals);
        prop_assert!(run.numbers().is_sorted());
        for delivery in &run.deliveries {
            let took = delivery.due.since(delivery.offered);
            prop_assert!(took >= profile.delay + handover.extra_delay.least);
        }
    }

    #[test]
    fn the_gap_of_a_hand_over_holds_or_drops_packets_in_both_directions_at_once(
        handover in any_handover(), arrivals in any_arrivals(),
    ) {
        let handover = Handover { extra_delay: Range { least: Duration::ZERO, most: Duration::ZERO }, ..handover };
        let profile = DirectionProfile { handover: Some(handover), ..plain(0, Duration::ZERO, 1_000_000) };
        let [up, down] = [Way::Up, Way::Down]
            .map(|way| run(Direction::new(way, &profile, Vec::new(), MTU_BYTES, Seed(1)), &arrivals));
        prop_assert_eq!(&up.deliveries, &down.deliveries);
        if handover.kind == Kind::Hold {
            prop_assert_eq!(up.deliveries.len(), arrivals.len());
        }
        // Without a rate and a delay, a packet leaves when it is due.
        for delivery in &up.deliveries {
            let into = delivery.due.as_nanos() % u64::try_from(handover.every.as_nanos()).unwrap();
            let is_first_path = delivery.due.as_nanos() == into;
            prop_assert!(is_first_path || Duration::from_nanos(into) >= handover.gap.least);
        }
    }
}

#[test]
fn a_saturated_link_sends_at_exactly_its_rate() {
    // 1,000 full packets offered at once at 12 Mbit/s: one leaves each millisecond, and the last after a second.
    let profile = plain(12_000_000, Duration::from_millis(300), 1_500_000);
    let arrivals = vec![Arrival { gap: Duration::ZERO, length: 1500 }; 1000];
    let run = run(direction(&profile, 1), &arrivals);
    let due: Vec<_> = run.deliveries.iter().map(|delivery| delivery.due.as_nanos()).collect();
    let expected: Vec<_> = (1..=1000).map(|n| 300_000_000 + n * 1_000_000).collect();
    assert_eq!(due, expected);
    assert_eq!(run.direction.counters().busy, Duration::from_secs(1));
}

#[test]
fn a_packet_has_the_same_jitter_whether_or_not_others_are_lost() {
    // The packets are a second apart, so that none waits for the one before it.
    let arrivals = vec![Arrival { gap: Duration::from_secs(1), length: 100 }; 200];
    let jitter = Some(JitterProfile { amount: Duration::from_millis(50), shape: Shape::Uniform });
    let clear = DirectionProfile { jitter, ..plain(0, Duration::from_millis(100), 100_000) };
    let lossy = DirectionProfile { random_loss: Some(0.3), ..clear.clone() };
    let clear = run(direction(&clear, 3), &arrivals).deliveries;
    let lossy = run(direction(&lossy, 3), &arrivals).deliveries;
    assert!(lossy.len() < 180 && lossy.iter().all(|delivery| clear.contains(delivery)));
}

#[test]
fn a_packet_longer_than_the_mtu_is_dropped_and_said_so() {
    let mut direction = direction(&plain(0, Duration::ZERO, 100_000), 1);
    assert_eq!(direction.offer(Moment::START, vec![0; 1501]), Offer::Dropped(DropCause::TooLong));
    assert_eq!(direction.offer(Moment::START, vec![0; 1500]), Offer::Queued);
    assert_eq!(direction.counters().dropped.too_long.packets, 1);
}

#[test]
fn a_packet_held_back_is_overtaken_by_those_that_follow_closely() {
    let reordering = Some(ReorderingProfile { probability: 0.2, held_back: Duration::from_millis(30) });
    let profile = DirectionProfile { reordering, ..plain(0, Duration::from_millis(10), 100_000) };
    let arrivals = vec![Arrival { gap: Duration::from_millis(1), length: 100 }; 500];
    let run = run(direction(&profile, 1), &arrivals);
    let numbers = run.numbers();
    assert!(!numbers.is_sorted());
    let overtaken = run.direction.counters().held_back_packets;
    assert!((70..=130).contains(&overtaken), "{overtaken} of 500 held back");
    let mut sorted = numbers;
    sorted.sort_unstable();
    assert_eq!(sorted, (0..500).collect::<Vec<_>>(), "none lost, none twice");
}

#[test]
fn a_doubled_packet_arrives_twice_at_the_same_moment() {
    let profile = DirectionProfile { duplication: Some(1.0), ..plain(0, Duration::from_millis(10), 100_000) };
    let arrivals = vec![Arrival { gap: Duration::from_millis(1), length: 100 }; 3];
    let run = run(direction(&profile, 1), &arrivals);
    assert_eq!(run.numbers(), [0, 0, 1, 1, 2, 2]);
    assert_eq!(run.deliveries[0], run.deliveries[1]);
}

#[test]
fn an_outage_asked_for_while_running_holds_what_has_not_begun_and_lets_finish_what_has() {
    // At 12 kbit/s a full packet takes a second.
    let mut link = direction(&plain(12_000, Duration::ZERO, 100_000), 1);
    let at = |millis| Moment::after_start(Duration::from_millis(millis));
    link.offer(at(0), numbered(0, 1500));
    link.offer(at(0), numbered(1, 1500));
    link.begin_outage(
        at(500),
        Outage { start: at(500), length: Duration::from_secs(5), every: None, kind: Kind::Hold },
    );
    let mut deliveries = Vec::new();
    wake_until(&mut link, at(60_000), &mut deliveries);
    let due: Vec<_> = deliveries.iter().map(|delivery| delivery.due).collect();
    assert_eq!(due, [at(1_000), at(6_500)]);
}

/// Returns a packet from an address to another one.
fn addressed(source: u8, destination: u8) -> Vec<u8> {
    let mut packet = vec![0; MTU_BYTES];
    packet[0] = 0x45;
    packet[15] = source;
    packet[19] = destination;
    packet
}

#[test]
fn a_fair_queue_lets_a_small_flow_pass_a_large_one() {
    let wait = |fair| {
        let profile = DirectionProfile { fair, ..plain(12_000, Duration::ZERO, 100_000) };
        let mut link = direction(&profile, 1);
        for _ in 0..30 {
            link.offer(Moment::START, addressed(1, 9));
        }
        link.offer(Moment::START, addressed(2, 8));
        let mut deliveries = Vec::new();
        wake_until(&mut link, Moment::from_nanos(u64::MAX), &mut deliveries);
        assert_eq!(deliveries.len(), 31);
        let small = deliveries.iter().find(|delivery| delivery.packet[15] == 2).unwrap();
        small.due.since(small.offered)
    };
    // A packet takes a second. The first one is on its way when the small flow comes, and the large flow has one turn.
    assert_eq!(wait(None), Duration::from_secs(31));
    assert_eq!(wait(Some(FairBy::Flow)), Duration::from_secs(3));
    assert_eq!(wait(Some(FairBy::Client)), Duration::from_secs(3));
}

#[test]
fn a_full_fair_queue_drops_of_the_largest_flow_and_counts_each_packet_once() {
    let profile = DirectionProfile { fair: Some(FairBy::Flow), ..plain(12_000, Duration::ZERO, 15_000) };
    let mut link = direction(&profile, 1);
    for _ in 0..30 {
        link.offer(Moment::START, addressed(1, 9));
    }
    for _ in 0..3 {
        link.offer(Moment::START, addressed(2, 8));
    }
    let mut deliveries = Vec::new();
    wake_until(&mut link, Moment::from_nanos(u64::MAX), &mut deliveries);
    assert_eq!(deliveries.iter().filter(|delivery| delivery.packet[15] == 2).count(), 3);
    assert_eq!(deliveries.len(), 10);
    let counters = link.counters();
    assert_eq!((counters.offered.packets, counters.dropped.queue_full.packets), (33, 23));
}

#[test]
fn a_second_outage_prolongs_the_wait_of_a_packet_that_already_waits() {
    let mut link = direction(&plain(12_000, Duration::ZERO, 100_000), 1);
    let at = |millis| Moment::after_start(Duration::from_millis(millis));
    let outage = |start: u64, millis| Outage {
        start: at(start),
        length: Duration::from_millis(millis),
        every: None,
        kind: Kind::Hold,
    };
    link.begin_outage(at(0), outage(0, 1_000));
    link.offer(at(100), numbered(0, 1500));
    link.begin_outage(at(200), outage(200, 3_000));
    let mut deliveries = Vec::new();
    wake_until(&mut link, at(60_000), &mut deliveries);
    assert_eq!(deliveries[0].due, at(4_200));
}
