//! The evidence, the advice and the text for a terminal.

use super::finding::{Cause, Part, Verdict, Way, Why};
use super::measured::{Measured, Timed};
use crate::table;

const WIDTH: usize = 110;

/// Returns the name of a part in a sentence.
pub(super) fn name(cause: Cause, way: &Way) -> &'static str {
    match cause {
        Cause::RoundTrip => "the round trip of the link",
        Cause::Loss => "lost packets",
        Cause::Queue => "the queue in front of the link",
        Cause::Rate => "the rate of the link",
        Cause::Resolver => "the resolver",
        Cause::Place if way.is_alone => "the way from this box to the origins",
        Cause::Place => "the way from the ground to the origins",
        Cause::Origin => "the origins",
        Cause::ClientNetwork => "a client's own network",
    }
}

/// Returns the figures that show a part.
pub(super) fn evidence(cause: Cause, measured: &Measured, way: &Way) -> String {
    let rtt_us = measured.rtt_us.unwrap_or(way.rtt_us);
    let of = |times: Option<Timed>| times.unwrap_or_default();
    match cause {
        Cause::RoundTrip => match measured.rtt_us {
            Some(measured) => format!("{} measured, {} configured", millis(measured), millis(way.rtt_us)),
            None => format!("{} configured, nothing measured", millis(way.rtt_us)),
        },
        Cause::Loss => {
            let Measured { segments, sent_again, .. } = *measured;
            format!("{sent_again} of {segments} segments were sent again ({})", tenths(sent_again, segments))
        }
        Cause::Queue => format!(
            "packets wait {} beyond the {} of the link, and Longhaul uses {} % of its rate",
            millis(measured.queue_us.unwrap_or(0)),
            millis(rtt_us),
            way.use_percent(measured)
        ),
        Cause::Rate => format!(
            "{} of {} down, {} of {} up",
            rate(measured.down_bps),
            rate(way.down_bps),
            rate(measured.up_bps),
            rate(way.up_bps)
        ),
        Cause::Resolver => {
            let times = of(measured.lookups);
            format!(
                "{} for a query without the way there, the median of {}",
                millis(measured.own_us(times)),
                times.count
            )
        }
        Cause::Place => {
            let Timed { median_us, count } = of(measured.connects);
            format!("{} until a connection stands, the median of {count}", millis(median_us))
        }
        Cause::Origin => {
            let times = of(measured.first_bytes);
            let own = millis(measured.own_us(times));
            format!("{own} to the first byte without the way there, the median of {} over http", times.count)
        }
        Cause::ClientNetwork => {
            let figures = measured.clients;
            let beyond = if way.is_alone { " beyond the link" } else { "" };
            format!(
                "{} of {} clients are far from this box, the farthest by {}{beyond}",
                figures.slow,
                figures.seen,
                millis(figures.slowest_us)
            )
        }
    }
}

/// Returns the advice about a cause.
pub(super) fn advice(cause: Cause, way: &Way) -> &'static str {
    match cause {
        Cause::RoundTrip => {
            "Write the measured value as `link.rtt`; `longhaul measure` proposes the line. If the link was nearer before, ask its provider"
        }
        Cause::Loss => "Look at the modem's signal. If it is good, ask the provider of the link",
        Cause::Queue => {
            "Something beside Longhaul fills the link, or `link.down` and `link.up` are too high: `longhaul measure`, and `longhaul host` for what bypasses this box"
        }
        Cause::Rate => {
            "The clients use what the link has. `longhaul log --who` names them; `clients:` gives groups weights and quotas"
        }
        Cause::Resolver => "Name another resolver in `upstream.resolvers`, one near this machine",
        Cause::Place if way.is_alone => {
            "Nothing is wrong here: the sites are far away. A box nearer to them would help"
        }
        Cause::Place => "Move the ground nearer to the sites, or choose another one in `split.peer`",
        Cause::Origin => "Nothing to do here: the sites themselves are slow. `longhaul log --slow` names them",
        Cause::ClientNetwork => "Look at the Wi-Fi or the cable of those clients. The link has no part in it",
    }
}

/// Returns the result in one sentence.
pub(super) fn sentence(verdict: Verdict, parts: &[Part], all_us: u64) -> String {
    match verdict {
        Verdict::Idle => "Nobody has used this box in the last minute, and nothing is wrong with the link.".to_owned(),
        Verdict::Healthy => {
            let link = parts.iter().find(|part| part.cause == Cause::RoundTrip).map_or(0, |part| part.time_us);
            format!(
                "Nothing takes more time than it should: a new request waits {}, of which the link takes {}.",
                millis(all_us),
                millis(link)
            )
        }
        Verdict::Slow => {
            let causes: Vec<&str> = parts.iter().filter(|part| part.is_cause).map(|part| part.name).collect();
            let is_plural = parts.iter().any(|part| part.is_cause && matches!(part.cause, Cause::Loss | Cause::Origin));
            let verb = if causes.len() == 1 && !is_plural { "takes" } else { "take" };
            format!("{} {verb} more time than normal.", capital(&listed(&causes)))
        }
    }
}

impl Why {
    /// Returns the explanation for a terminal. Its first line is the sentence.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        let causes: String = self.causes().map(paragraph).collect();
        let rows: Vec<Vec<String>> = self
            .parts
            .iter()
            .map(|part| {
                let share = format!("{} %", part.percent);
                vec![
                    part.name.trim_start_matches("the ").to_owned(),
                    millis(part.time_us),
                    share,
                    part.evidence.clone(),
                ]
            })
            .collect();
        let seconds = self.measured.over_s;
        format!(
            "{}\n{causes}\nThe parts of a new request's time, from the last {seconds} s:\n\n{}",
            self.sentence,
            table::table(&["part", "time", "share", "evidence"], &rows, WIDTH)
        )
    }
}

/// A cause with its figures and its advice.
fn paragraph(part: &Part) -> String {
    let lines = [
        ("", format!("{} % of a new request, {}: {}.", part.percent, millis(part.time_us), part.evidence)),
        ("", format!("{}.", part.advice)),
    ];
    format!("\n{}\n{}", capital(part.name), table::rows(&lines, WIDTH))
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn millis(micros: u64) -> String {
    format!("{} ms", micros.saturating_add(500) / 1000)
}

/// Returns a share in percent, with a digit behind the point.
fn tenths(part: u64, whole: u64) -> String {
    let tenths = part.saturating_mul(1000).checked_div(whole).unwrap_or(0);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Returns bits per second with the unit that suits them.
fn rate(bits: u64) -> String {
    match bits {
        0..10_000 => format!("{bits} bit/s"),
        10_000..10_000_000 => format!("{} kbit/s", bits / 1000),
        _ => format!("{} Mbit/s", bits / 1_000_000),
    }
}
