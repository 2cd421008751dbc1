//! The other end of a pair.

use std::time::Duration;

use longhaul_config::{Link, Price, Rate, show_duration};

use super::super::finding::Finding;
use super::super::gather::path::{Passage, PathFact, Tried};
use super::super::table::Check;
use crate::pair::{self, Line, Topic};

/// A measured value that differs from the configured one by this factor gets a warning.
const FACTOR: u32 = 2;
/// A round trip below this does not change what follows from the link.
const SHORT: Duration = Duration::from_millis(20);

/// Passes on the lines of `longhaul pair check`. `about` picks those of one subject.
pub(crate) fn lines(check: Check, about: Topic, lines: &[Line]) -> Vec<Finding> {
    let of_topic = lines.iter().filter(|line| line.topic == about);
    let finding = |line: &Line| match line.verdict {
        pair::Verdict::Good => Finding::ok(check, line.text.clone()),
        pair::Verdict::Problem => Finding { cure: None, ..Finding::error(check, line.text.clone(), "") },
        pair::Verdict::Note => Finding::skipped(check, line.text.clone()),
    };
    of_topic.map(finding).collect()
}

/// Judges the round trip, by the shortest of all tries.
pub(crate) fn rtt(fact: &PathFact, link: &Link) -> Vec<Finding> {
    let check = Check::Rtt;
    let passed = fact.tried.iter().filter_map(|one| match one.passage {
        Passage::Passed { round_trip } => Some(round_trip),
        _ => None,
    });
    let Some(measured) = passed.min() else {
        return vec![Finding::skipped(check, "no packet came back")];
    };
    let measured = Duration::from_millis(u64::try_from(measured.as_millis()).unwrap_or(u64::MAX).max(1));
    let (now, configured) = (show_duration(measured), show_duration(link.rtt));
    let far = measured > link.rtt * FACTOR || measured * FACTOR < link.rtt;
    vec![if far && measured.max(link.rtt) > SHORT {
        let text = format!("{now} to the ground and back, and `link.rtt` is {configured}");
        Finding::warning(check, text, format!("write `rtt: {now}` into `link` at both ends, if it is so without load"))
    } else {
        Finding::ok(check, format!("{now} to the ground and back; `link.rtt` is {configured}"))
    }]
}

/// Judges the sizes of packets that pass.
pub(crate) fn mtu(fact: &PathFact, link: &Link) -> Vec<Finding> {
    let check = Check::Mtu;
    let passes = |one: &&Tried| matches!(one.passage, Passage::Passed { .. });
    let of = |size| fact.tried.iter().find(|one| one.size == size);
    let largest = fact.tried.iter().filter(passes).filter_map(|one| one.size).max();
    let own = link.mtu.and_then(|mtu| of(Some(mtu)));
    let kernel = of(None);
    vec![match (kernel.filter(passes), own, largest) {
        (_, Some(own), _) if passes(&own) => {
            Finding::ok(check, format!("packets of `link.mtu: {}` pass", own.size.unwrap_or_default()))
        }
        (Some(_), ..) => Finding::ok(check, "packets of the full size pass in both directions"),
        (None, _, Some(largest)) => vanish(check, largest, fact.probes),
        (None, _, None) => match kernel.map(|one| &one.passage) {
            Some(Passage::Failed(why)) => Finding::skipped(check, format!("not tried: {why}")),
            _ => Finding::error(
                check,
                "no packets of any size pass, although the ground accepts connections",
                "look for a firewall or a proxy between both ends",
            ),
        },
    }]
}

fn vanish(check: Check, largest: u32, probes: bool) -> Finding {
    let more =
        if probes { "" } else { "; without it: sysctl -w net.ipv4.tcp_mtu_probing=1 at both ends, then restart" };
    Finding::error(
        check,
        format!("packets of {largest} bytes pass, and larger ones vanish: pages hang"),
        format!("write `mtu: {largest}` into `link` at both ends{more}"),
    )
}

/// Judges the rate towards the ground.
pub(crate) fn rate(measured: &Result<Rate, String>, link: &Link) -> Vec<Finding> {
    let check = Check::Rate;
    let measured = match measured {
        Ok(rate) => *rate,
        Err(why) => return vec![Finding::skipped(check, format!("not measured: {why}"))],
    };
    let shown = rounded(measured);
    let text = format!("{shown} towards the ground now; `link.up` is {}", link.up);
    let bits = (measured.bits_per_second, link.up.bits_per_second);
    vec![if bits.0.saturating_mul(FACTOR.into()) < bits.1 {
        Finding::warning(check, text, "longhaul measure; others may use the link now, or `link.up` is too large")
    } else if bits.0 > bits.1.saturating_mul(FACTOR.into()) {
        Finding::warning(
            check,
            text,
            format!("write `up: {shown}` into `link` at both ends, if it is so at other times"),
        )
    } else {
        Finding::ok(check, text)
    }]
}

/// The reason for which nothing is sent to measure the rate. None: it may be.
pub(crate) fn rate_costs(link: &Link) -> Option<Finding> {
    (link.price == Price::Metered)
        .then(|| Finding::skipped(Check::Rate, "not measured, because `link.price` is metered"))
}

/// Returns a rate with two digits.
fn rounded(rate: Rate) -> Rate {
    let bits = rate.bits_per_second;
    let unit = 10_u64.pow(bits.checked_ilog10().unwrap_or(0).saturating_sub(1));
    Rate { bits_per_second: bits / unit * unit }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::*;

    fn link(mtu: Option<u32>) -> Link {
        let rate = |mbit: u64| Rate { bits_per_second: mbit * 1_000_000 };
        Link { mtu, ..Link::of(Duration::from_millis(600), rate(20), rate(5)) }
    }

    fn path(passes: impl Fn(Option<u32>) -> bool) -> PathFact {
        let tried = |size| Tried {
            size,
            passage: if passes(size) {
                Passage::Passed { round_trip: Duration::from_millis(610) }
            } else {
                Passage::Vanished
            },
        };
        let tried = [None, Some(1200), Some(1280), Some(1300), Some(1400)].map(tried).into();
        PathFact { tried, probes: false }
    }

    #[test]
    fn the_largest_size_that_passes_is_the_cure() {
        let tunnel = path(|size| size.is_some_and(|size| size <= 1290));
        let found = mtu(&tunnel, &link(None)).remove(0);
        assert_eq!(found.text, "packets of 1280 bytes pass, and larger ones vanish: pages hang");
        assert!(found.cure.as_deref().unwrap().starts_with("write `mtu: 1280` into `link`"), "{found:?}");
        assert_eq!(found.verdict, Verdict::Error);
        assert_eq!(mtu(&tunnel, &link(Some(1280)))[0].text, "packets of `link.mtu: 1280` pass");
        assert_eq!(mtu(&tunnel, &link(Some(1400)))[0].verdict, Verdict::Error);
        assert_eq!(mtu(&path(|_| true), &link(None))[0].verdict, Verdict::Ok);
        assert_eq!(mtu(&path(|_| false), &link(None))[0].verdict, Verdict::Error);
        let failed = PathFact {
            tried: vec![Tried { size: None, passage: Passage::Failed("refused".to_owned()) }],
            probes: true,
        };
        assert_eq!(mtu(&failed, &link(None))[0].verdict, Verdict::Skipped);
    }

    #[test]
    fn a_round_trip_far_from_the_configured_one_is_a_warning() {
        let far = Link { rtt: Duration::from_millis(60), ..link(None) };
        assert_eq!(rtt(&path(|_| true), &link(None))[0].verdict, Verdict::Ok);
        let found = rtt(&path(|_| true), &far).remove(0);
        assert_eq!(
            (found.verdict, found.text.as_str()),
            (Verdict::Warning, "610ms to the ground and back, and `link.rtt` is 60ms")
        );
        assert_eq!(rtt(&path(|_| false), &link(None))[0].verdict, Verdict::Skipped);
    }

    #[test]
    fn a_rate_below_half_or_above_twice_is_a_warning_and_a_metered_link_is_left_alone() {
        let judged = |tenths: u64| rate(&Ok(Rate { bits_per_second: tenths * 100_000 }), &link(None)).remove(0).verdict;
        assert_eq!(
            [judged(20), judged(30), judged(90), judged(120)],
            [Verdict::Warning, Verdict::Ok, Verdict::Ok, Verdict::Warning]
        );
        assert_eq!(rate(&Err("timed out".to_owned()), &link(None))[0].verdict, Verdict::Skipped);
        assert!(rate_costs(&link(None)).is_none());
        assert!(rate_costs(&Link { price: Price::Metered, ..link(None) }).is_some());
    }
}
