//! `longhaul status --watch`: the path, the use of the link and what was saved, for a terminal.

use super::past::utc;
use super::path::{Light, Stop};
use super::spark::Spark;
use super::text::{lines, printable};
use super::words::size;
use super::{Status, time};
use crate::table;

/// The problems of the past that are shown.
const PAST: usize = 3;

/// Returns the screen in `width` columns.
pub(super) fn screen(status: &Status, width: usize) -> String {
    let verdict = if status.problems.is_empty() { "ok\n".to_owned() } else { lines("problem", &status.problems) };
    let why = status.why.as_ref().map_or("Nothing is measured yet.", |why| &why.sentence);
    let stops: Vec<Vec<String>> = status.path.iter().map(row).collect();
    let parts = [
        format!("{}: Longhaul {}, up {}, {}\n\n", status.host, status.role, time(status.uptime_s), utc(status.at)),
        verdict,
        lines("warning", &status.warnings),
        format!("{}\n\n", printable(why)),
        table::table(&["", "", ""], &stops, width).trim_start_matches('\n').to_owned(),
        chart("down", &status.sparks.down),
        chart("up", &status.sparks.up),
        sums(status),
    ];
    parts.concat()
}

fn chart(way: &str, spark: &Spark) -> String {
    format!("\n{way:<5}|{}| last hour: mean {}, peak {}", spark.blocks, spark.mean, spark.peak)
}

/// The savings, the shares of groups, and the last problems.
fn sums(status: &Status) -> String {
    let saved = &status.saved_today.saved;
    let saved = format!(
        "\n\nSaved today (UTC): {} round trips, {}, {} responses from the cache (estimate)\n",
        saved.round_trips,
        size(saved.bytes),
        saved.from_cache
    );
    let groups = status.groups.iter().map(|group| {
        let name = printable(&group.name);
        format!("Group {name}: {} down, {} up today\n", size(group.today.down), size(group.today.up))
    });
    let past = status.last_problems.iter().take(PAST);
    let past = past.map(|problem| format!("Last problem: {}\n", printable(&problem.words())));
    std::iter::once(saved).chain(groups).chain(past).collect()
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
