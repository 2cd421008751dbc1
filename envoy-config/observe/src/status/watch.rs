//! `longhaul status --watch`: the path, the use of the link and what was saved, for a terminal.

use super::past::utc;
use super::path::{Light, Stop};
use super::text::{lines, printable};
use super::words::size;
use super::{Status, time};
use crate::table;

/// The problems of the past that are shown.
const PAST: usize = 3;

/// Returns the screen in `width` columns.
pub(super) fn screen(status: &Status, width: usize) -> String {
    let mut text =
        format!("{}: Longhaul {}, up {}, {}\n\n", status.host, status.role, time(status.uptime_s), utc(status.at));
    text.push_str(&if status.problems.is_empty() { "ok\n".to_owned() } else { lines("problem", &status.problems) });
    text.push_str(&lines("warning", &status.warnings));
    let why = status.why.as_ref().map_or("Nothing is measured yet.", |why| &why.sentence);
    text.push_str(&format!("{}\n\n", printable(why)));
    text.push_str(
        &table::table(&["", "", ""], &status.path.iter().map(row).collect::<Vec<_>>(), width).trim_start_matches('\n'),
    );
    let sparks = &status.sparks;
    for (way, spark) in [("down", &sparks.down), ("up", &sparks.up)] {
        text.push_str(&format!("\n{way:<5}|{}| last hour: mean {}, peak {}", spark.blocks, spark.mean, spark.peak));
    }
    let saved = &status.saved_today.saved;
    text.push_str(&format!(
        "\n\nSaved today (UTC): {} round trips, {}, {} responses from the cache (estimate)\n",
        saved.round_trips,
        size(saved.bytes),
        saved.from_cache
    ));
    for group in &status.groups {
        let name = printable(&group.name);
        text.push_str(&format!("Group {name}: {} down, {} up today\n", size(group.today.down), size(group.today.up)));
    }
    for problem in status.last_problems.iter().take(PAST) {
        text.push_str(&format!("Last problem: {}\n", printable(&problem.words())));
    }
    text
}

fn row(stop: &Stop) -> Vec<String> {
    let sign = match stop.light {
        Light::Quiet => "·",
        Light::Ok => "●",
        Light::Slow => "▲",
        Light::Broken => "✖",
    };
    let here = if stop.is_here { " (here)" } else { "" };
    vec![format!("{sign} {}{here}", stop.name), stop.word.to_owned(), printable(&stop.words)]
}
