//! The use of the link in the last hour as small bar charts: paths of inline SVG, and block characters for a terminal.

use std::fmt::Write as _;

use serde::Serialize;

use super::past::PastProblem;
use super::words::bit_rate;
use crate::why::Minute;

/// The minutes of a chart.
const MINUTES: u64 = 60;
/// The size of a bar and of a chart, in units of the SVG.
const BAR: u64 = 8;
const STEP: u64 = 10;
const HEIGHT: u64 = 48;
/// The characters of a terminal, from nothing to full.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A chart of one direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Spark {
    /// The path of the bars.
    pub bars: String,
    /// The path of minutes with a problem. Empty without any.
    pub problems: String,
    /// The highest minute in words.
    pub peak: String,
    /// The mean of the minutes in which the box ran, in words.
    pub mean: String,
    /// The same for a terminal.
    pub blocks: String,
}

/// The charts of both directions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Sparks {
    /// To clients.
    pub down: Spark,
    /// From clients.
    pub up: Spark,
    /// The width and height of the drawings.
    pub size: [u64; 2],
    /// The minutes with a problem.
    pub minutes_with_problems: usize,
}

/// Returns the charts of the hour that ends at `now`, in seconds since 1970.
pub(super) fn sparks(hour: &[Minute], past: &[PastProblem], now: u64) -> Sparks {
    let first = (now / 60).saturating_sub(MINUTES - 1);
    let with_problem: Vec<u64> = (0..MINUTES).filter(|slot| has_problem(past, first + slot)).collect();
    let chart = |value: fn(&Minute) -> u64| {
        let slots: Vec<Option<u64>> =
            (0..MINUTES).map(|slot| hour.iter().find(|one| one.at == first + slot).map(value)).collect();
        spark(&slots, &with_problem)
    };
    Sparks {
        down: chart(|minute| minute.down),
        up: chart(|minute| minute.up),
        size: [MINUTES * STEP, HEIGHT],
        minutes_with_problems: with_problem.len(),
    }
}

/// Returns true if a problem stood in a minute.
fn has_problem(past: &[PastProblem], minute: u64) -> bool {
    let (begin, end) = (minute * 60, minute * 60 + 60);
    past.iter().any(|one| one.record.began < end && one.record.ended.is_none_or(|ended| ended >= begin))
}

/// Returns the chart of the bytes of each minute. None: nothing ran.
fn spark(slots: &[Option<u64>], with_problem: &[u64]) -> Spark {
    let peak = slots.iter().flatten().max().copied().unwrap_or(0);
    let known = slots.iter().flatten();
    let mean = known.clone().sum::<u64>().checked_div(known.count() as u64).unwrap_or(0);
    let (mut bars, mut problems, mut blocks) = (String::new(), String::new(), String::new());
    for (slot, bytes) in (0..).zip(slots) {
        let x = slot * STEP;
        if let Some(bytes) = bytes {
            // The least bar shows that the box ran.
            let height = share(*bytes, peak, HEIGHT - 1) + 1;
            let _ = write!(bars, "M{x} {HEIGHT}v-{height}h{BAR}v{height}z");
        }
        if with_problem.contains(&slot) {
            let _ = write!(problems, "M{x} 0h{STEP}v{HEIGHT}h-{STEP}z");
        }
        let block = bytes.map_or(0, |bytes| share(bytes, peak, 7) + 1);
        blocks.push(usize::try_from(block).ok().and_then(|block| BLOCKS.get(block)).copied().unwrap_or(' '));
    }
    let per_second = |bytes: u64| bit_rate(bytes.saturating_mul(8) / 60);
    Spark { bars, problems, peak: per_second(peak), mean: per_second(mean), blocks }
}

/// Returns `part` of `whole` on a scale up to `most`, rounded.
fn share(part: u64, whole: u64, most: u64) -> u64 {
    (part.saturating_mul(most) + whole / 2).checked_div(whole).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ProblemKind, ProblemRecord};

    fn minute(at: u64, down: u64) -> Minute {
        Minute { at, down, up: 0 }
    }

    #[test]
    fn an_hour_without_a_box_is_empty_and_an_idle_minute_is_a_line() {
        let empty = sparks(&[], &[], 7200);
        assert_eq!((empty.down.bars.as_str(), empty.down.peak.as_str()), ("", "0 bit/s"));
        assert_eq!(empty.down.blocks.trim(), "");
        let idle = sparks(&[minute(119, 0)], &[], 7199);
        assert_eq!(idle.down.bars, "M590 48v-1h8v1z", "the last minute is on the right");
        assert_eq!(idle.down.blocks.trim_start(), "▁");
    }

    #[test]
    fn the_highest_minute_is_as_high_as_the_chart_and_others_are_in_proportion() {
        let hour = [minute(60, 0), minute(61, 7_500_000), minute(62, 15_000_000)];
        let found = sparks(&hour, &[], 119 * 60);
        assert_eq!(found.down.bars, "M0 48v-1h8v1zM10 48v-25h8v25zM20 48v-48h8v48z");
        assert_eq!((found.down.peak.as_str(), found.down.mean.as_str()), ("2.0 Mbit/s", "1.0 Mbit/s"));
        assert!(found.down.blocks.starts_with("▁▅█ "), "{:?}", found.down.blocks);
        assert_eq!(found.up.bars.matches('M').count(), 3);
    }

    #[test]
    fn minutes_with_a_problem_are_marked_from_its_beginning_to_its_end() {
        let record = |began, ended| ProblemRecord {
            kind: ProblemKind::LinkSilent,
            of: String::new(),
            text: String::new(),
            began,
            ended,
        };
        let of = |began, ended| sparks(&[], &[PastProblem::of(record(began, ended), 7199)], 7199);
        assert_eq!(of(3700, Some(3779)).down.problems, "M10 0h10v48h-10zM20 0h10v48h-10z");
        assert_eq!(of(7100, None).minutes_with_problems, 2, "it stands");
        assert_eq!(of(100, Some(200)).down.problems, "", "longer ago");
    }
}
