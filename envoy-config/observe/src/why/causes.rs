//! The arithmetic: from the figures of a minute to the parts of a new request's time, and to the causes among them.
//!
//! A new request is one for a name and a server that nobody has used yet. It waits for a query, a connection, and the first
//! byte of the response. Requests that find a name, a connection or a response in store wait for less. So the parts say
//! where the time goes, and not how long a page takes.

use super::finding::{Cause, Part, Verdict, Way, Why};
use super::limits::{Limit, limit, micros};
use super::measured::{Measured, Timed};
use super::words;

/// The segments of a response whose loss counts: the first window of a connection (RFC 6928).
const FIRST_WINDOW: u64 = 10;
/// The bytes of an object that waits for others on a link whose rate is used up. On a slow link it is a second of the rate.
const OBJECT_BITS: u64 = 100_000 * 8;
/// Beyond this use, in percent, a wait depends on more than the use.
const MOST_USE: u64 = 95;
/// A client's query, its connection and its request each take a round trip of its own network.
const CLIENT_ROUND_TRIPS: u64 = 3;

/// A part's time, and whether it is beyond its limit.
type Cost = (u64, bool);

/// Returns the parts of a new request's time, and the causes among them. None before there are figures.
#[must_use]
pub(crate) fn explain(measured: &Measured, way: &Way) -> Option<Why> {
    if measured.over_s == 0 {
        return None;
    }
    let costs: Vec<(Cause, Cost)> =
        Cause::ALL.iter().filter_map(|cause| Some((*cause, cost(*cause, measured, way)?))).collect();
    let costs = explained(costs);
    let all: u64 = costs.iter().map(|(_, (time, _))| time).fold(0, |sum, time| sum.saturating_add(*time));
    let mut parts: Vec<Part> = costs
        .into_iter()
        .map(|(cause, (time_us, is_cause))| Part {
            cause,
            name: words::name(cause, way),
            is_cause,
            time_us,
            percent: time_us.saturating_mul(100).checked_div(all).unwrap_or(0),
            evidence: words::evidence(cause, measured, way),
            advice: words::advice(cause, way),
            limit: limit(cause).map_or("", |limit| limit.why),
        })
        .collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.time_us));
    let verdict = if parts.iter().any(|part| part.is_cause) {
        Verdict::Slow
    } else if measured.requests == 0 {
        Verdict::Idle
    } else {
        Verdict::Healthy
    };
    let sentence = words::sentence(verdict, &parts, all);
    Some(Why { verdict, sentence, parts, measured: measured.clone() })
}

/// Takes effects from the causes. A link whose rate is used up has queues, and queues that overflow lose packets. While it
/// is full, nobody can tell these losses from others.
fn explained(costs: Vec<(Cause, Cost)>) -> Vec<(Cause, Cost)> {
    let is_full = costs.iter().any(|(cause, (_, is_cause))| *cause == Cause::Rate && *is_cause);
    let is_effect = |cause: Cause| is_full && matches!(cause, Cause::Queue | Cause::Loss);
    costs.into_iter().map(|(cause, (time, is_cause))| (cause, (time, is_cause && !is_effect(cause)))).collect()
}

/// Returns the cost of a part. None if its figures are not known, or if it costs nothing.
fn cost(cause: Cause, measured: &Measured, way: &Way) -> Option<Cost> {
    let limit = limit(cause)?;
    let rtt_us = measured.rtt_us.unwrap_or(way.rtt_us);
    let trips = way.round_trips();
    match cause {
        Cause::RoundTrip => {
            let is_longer = rtt_us >= percent_of(limit.percent, way.rtt_us)
                && rtt_us >= way.rtt_us.saturating_add(micros(limit.time))
                && measured.peers >= limit.samples;
            Some((trips * rtt_us, is_longer))
        }
        Cause::Queue => {
            let queue_us = measured.queue_us?;
            let stands = queue_us >= micros(limit.time) && queue_us >= percent_of(limit.percent, rtt_us);
            Some((trips * queue_us, stands))
        }
        Cause::Loss => loss(measured, rtt_us, limit),
        Cause::Rate => rate(measured, way, limit),
        Cause::Resolver => own(measured.lookups, measured, limit),
        // The connection takes a round trip, and the request another one.
        Cause::Place => timed(measured.connects, limit, 2),
        Cause::Origin => own(measured.first_bytes, measured, limit),
        Cause::ClientNetwork => {
            let figures = measured.clients;
            let is_slow = figures.slow >= limit.samples;
            is_slow.then_some((CLIENT_ROUND_TRIPS * figures.slowest_us, true))
        }
    }
}

/// A response whose first window loses a segment waits for a round trip more.
fn loss(measured: &Measured, rtt_us: u64, limit: &Limit) -> Option<Cost> {
    let Measured { segments, sent_again, .. } = *measured;
    if segments < limit.samples {
        return None;
    }
    let time_us = rtt_us.saturating_mul((FIRST_WINDOW * sent_again).min(segments)) / segments;
    Some((time_us, sent_again * 100 >= limit.percent * segments))
}

/// An object waits for the bytes of others: its own time, times use / (1 - use).
fn rate(measured: &Measured, way: &Way, limit: &Limit) -> Option<Cost> {
    let percent = way.use_percent(measured);
    let used = percent.min(MOST_USE);
    let own_us = OBJECT_BITS.saturating_mul(1_000_000).checked_div(way.down_bps)?.min(1_000_000);
    Some((own_us * used / (100 - used), percent >= limit.percent))
}

fn timed(times: Option<Timed>, limit: &Limit, round_trips: u64) -> Option<Cost> {
    let Timed { median_us, count } = times?;
    Some((median_us.saturating_mul(round_trips), count >= limit.samples && median_us >= micros(limit.time)))
}

/// Returns the cost of a resolver or of origins without the way there, which is a matter of the place.
fn own(times: Option<Timed>, measured: &Measured, limit: &Limit) -> Option<Cost> {
    let own_us = measured.own_us(times?);
    Some((own_us, times?.count >= limit.samples && own_us >= micros(limit.time)))
}

fn percent_of(percent: u64, value: u64) -> u64 {
    value.saturating_mul(percent) / 100
}

#[cfg(test)]
mod tests {
    use super::super::measured::ClientFigures;
    use super::*;

    const PAIR: Way = Way { is_alone: false, rtt_us: 600_000, down_bps: 20_000_000, up_bps: 5_000_000 };

    fn times(median_ms: u64) -> Timed {
        Timed { median_us: median_ms * 1000, count: 20 }
    }

    /// A busy minute on a link that is as configured.
    fn healthy() -> Measured {
        Measured {
            over_s: 60,
            requests: 200,
            peers: 1,
            rtt_us: Some(605_000),
            queue_us: Some(30_000),
            segments: 4000,
            sent_again: 4,
            down_bps: 9_000_000,
            up_bps: 300_000,
            lookups: Some(times(15)),
            connects: Some(times(12)),
            first_bytes: Some(times(90)),
            clients: ClientFigures { seen: 9, slow: 0, slowest_us: 0 },
        }
    }

    fn inject(cause: Cause, mut into: Measured) -> Measured {
        match cause {
            Cause::RoundTrip => into.rtt_us = Some(1_100_000),
            Cause::Loss => into.sent_again = into.segments * 3 / 100,
            Cause::Queue => into.queue_us = Some(into.rtt_us.unwrap_or(0) / 2),
            Cause::Rate => into.down_bps = 19_000_000,
            Cause::Resolver => into.lookups = Some(times(900)),
            Cause::Place => {
                into.connects = Some(times(180));
                into.first_bytes = into.first_bytes.map(|it| Timed { median_us: it.median_us + 180_000, ..it });
            }
            Cause::Origin => {
                into.first_bytes = into.first_bytes.map(|it| Timed { median_us: it.median_us + 1_500_000, ..it });
            }
            Cause::ClientNetwork => into.clients = ClientFigures { seen: 9, slow: 1, slowest_us: 240_000 },
        }
        into
    }

    fn causes(measured: &Measured) -> Vec<Cause> {
        let mut found: Vec<Cause> = explain(measured, &PAIR).unwrap().causes().map(|part| part.cause).collect();
        found.sort_by_key(|cause| Cause::ALL.iter().position(|one| one == cause));
        found
    }

    #[test]
    fn each_cause_alone_is_named_with_its_figures_and_no_other_is() {
        for cause in Cause::ALL {
            let why = explain(&inject(cause, healthy()), &PAIR).unwrap();
            assert_eq!(why.causes().map(|part| part.cause).collect::<Vec<_>>(), [cause]);
            assert_eq!(why.verdict, Verdict::Slow);
            let verb = if matches!(cause, Cause::Loss | Cause::Origin) { " take more" } else { " takes more" };
            assert!(why.sentence.contains(verb), "{}", why.sentence);
            let part = why.causes().next().unwrap();
            assert!(part.time_us > 0 && part.evidence.bytes().any(|byte| byte.is_ascii_digit()), "{part:?}");
            assert!(
                why.sentence.to_lowercase().starts_with(&part.name.to_lowercase()) && !part.advice.is_empty(),
                "{}",
                why.sentence
            );
        }
    }

    #[test]
    fn two_causes_at_once_are_both_named() {
        for (place, one) in Cause::ALL.into_iter().enumerate() {
            for other in Cause::ALL.into_iter().skip(place + 1) {
                let found = causes(&inject(other, inject(one, healthy())));
                let is_effect = other == Cause::Rate && matches!(one, Cause::Queue | Cause::Loss);
                let wanted = if is_effect { vec![other] } else { vec![one, other] };
                assert_eq!(found, wanted, "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn a_rate_that_is_used_up_explains_the_queue_and_losses_and_nothing_else_does() {
        let full = inject(Cause::Rate, healthy());
        assert_eq!(causes(&inject(Cause::Loss, inject(Cause::Queue, full))), [Cause::Rate]);
        let by_others = inject(Cause::Loss, inject(Cause::Queue, healthy()));
        assert_eq!(causes(&by_others), [Cause::Loss, Cause::Queue]);
    }

    #[test]
    fn a_healthy_minute_has_no_cause_and_says_so_in_one_sentence() {
        let why = explain(&healthy(), &PAIR).unwrap();
        assert_eq!((why.verdict, why.causes().count()), (Verdict::Healthy, 0));
        assert_eq!(why.sentence.matches('.').count(), 1, "{}", why.sentence);
        assert_eq!(why.parts[0].cause, Cause::RoundTrip);
        assert!(why.parts.iter().map(|part| part.percent).sum::<u64>() <= 100);
    }

    #[test]
    fn just_below_each_limit_there_is_no_cause() {
        let below = Measured {
            rtt_us: Some(890_000),
            queue_us: Some(220_000),
            sent_again: 39,
            down_bps: 13_900_000,
            lookups: Some(times(220)),
            connects: Some(times(79)),
            first_bytes: Some(times(570)),
            ..healthy()
        };
        assert_eq!(causes(&below), []);
    }

    #[test]
    fn a_few_times_or_segments_prove_nothing() {
        let few = |median_ms: u64| Some(Timed { median_us: median_ms * 1000, count: 2 });
        let little = Measured {
            lookups: few(9000),
            connects: few(9000),
            first_bytes: few(20_000),
            segments: 40,
            sent_again: 9,
            ..healthy()
        };
        assert_eq!(causes(&little), []);
    }

    #[test]
    fn a_box_that_nobody_uses_is_idle_unless_its_link_is_slow() {
        let idle = Measured {
            requests: 0,
            lookups: None,
            connects: None,
            first_bytes: None,
            queue_us: None,
            segments: 0,
            sent_again: 0,
            ..healthy()
        };
        assert_eq!(explain(&idle, &PAIR).unwrap().verdict, Verdict::Idle);
        assert_eq!(explain(&inject(Cause::RoundTrip, idle), &PAIR).unwrap().verdict, Verdict::Slow);
        assert_eq!(explain(&Measured::default(), &PAIR), None);
    }

    #[test]
    fn a_ground_tells_what_lies_behind_it_and_losses_of_one_remote_alone() {
        let remote = Measured { lookups: None, connects: None, first_bytes: None, segments: 0, ..healthy() };
        let ground = inject(Cause::Resolver, inject(Cause::Loss, healthy()));
        assert_eq!(causes(&remote.with_ground(&ground)), [Cause::Loss, Cause::Resolver]);
        assert_eq!(causes(&remote.with_ground(&Measured { peers: 2, ..ground })), [Cause::Resolver]);
    }

    #[test]
    fn figures_beyond_all_bounds_do_not_overflow() {
        let most = Measured {
            over_s: 1,
            requests: u64::MAX,
            peers: u64::MAX,
            rtt_us: Some(u64::MAX / 4),
            queue_us: Some(u64::MAX / 4),
            segments: u64::MAX / 1000,
            sent_again: u64::MAX / 1000,
            down_bps: u64::MAX,
            up_bps: u64::MAX,
            lookups: Some(Timed { median_us: u64::MAX, count: u64::MAX }),
            connects: Some(Timed { median_us: u64::MAX, count: u64::MAX }),
            first_bytes: Some(Timed { median_us: u64::MAX, count: u64::MAX }),
            clients: ClientFigures { seen: 1, slow: 1, slowest_us: u64::MAX / 4 },
        };
        for way in [PAIR, Way { is_alone: true, rtt_us: 0, down_bps: 0, up_bps: 0 }] {
            assert!(explain(&most, &way).is_some());
        }
    }
}
