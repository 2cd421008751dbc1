//! The link: units that no slow link has, and rates that do not go together.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::contradictions::Places;
use crate::diagnostic::Problem;
use crate::reader::{rates_of_other_units, time_of_another_unit};
use crate::settings::{Draft, Link, NamedLink};
use crate::units::{Rate, show_duration};

/// The round trips of slow links, from a cell beside its server to two satellite hops with a long way between them.
const RTT: RangeInclusive<Duration> = Duration::from_millis(5)..=Duration::from_secs(5);
/// From this rate on, a short round trip is that of a local network, as between the caches of a site.
const LOCAL: Rate = Rate { bits_per_second: 1_000_000_000 };
/// No access link is sold with more than this much up for its down.
const MOST_UP: u64 = 2;
/// TCP sends an acknowledgement of about 60 bytes for two segments of 1500 bytes. With less up, they fill the uplink twice.
const MOST_DOWN: u64 = 100;

pub(super) fn check(places: &Places<'_>, draft: &Draft) -> Vec<Problem> {
    let (Some(link), Some(links)) = (&draft.link, &draft.links) else { return Vec::new() };
    let each = |link: &Link, at: &[&str]| [round_trip(places, link, at), rates(places, link, at)];
    if links.is_empty() {
        return each(link, &["link"]).into_iter().flatten().collect();
    }
    let of_one = |(at, link): (usize, &NamedLink)| each(&link.alone(), &["links", &at.to_string()]);
    links.iter().enumerate().flat_map(of_one).flatten().collect()
}

/// Returns the name of the group at a path: `link`, or `links[1]`.
fn group(at: &[&str]) -> String {
    match at {
        [group, index] => format!("{group}[{index}]"),
        _ => at.concat(),
    }
}

fn path<'p>(at: &[&'p str], key: &'p str) -> Vec<&'p str> {
    at.iter().copied().chain([key]).collect()
}

fn round_trip(places: &Places<'_>, link: &Link, at: &[&str]) -> Option<Problem> {
    let is_local = link.rtt < *RTT.start() && link.down >= LOCAL;
    if RTT.contains(&link.rtt) || is_local {
        return None;
    }
    let path = path(at, "rtt");
    let shown = show_duration(link.rtt);
    let meant = places.text(&path).and_then(|text| time_of_another_unit(text, &RTT));
    let meant = meant.map(|meant| format!("write `{meant}` if the unit is wrong; ")).unwrap_or_default();
    let [least, most] = [*RTT.start(), *RTT.end()].map(show_duration);
    let problem = Problem::warning(
        format!("`{}.rtt` of {shown} is not that of a slow link", group(at)),
        places.value(&path),
        format!("slow links have {least} to {most}"),
    );
    Some(
        problem.help(format!(
            "{meant}`ping` across the link shows its round trip, and `longhaul measure` the line to write"
        )),
    )
}

fn rates(places: &Places<'_>, link: &Link, at: &[&str]) -> Option<Problem> {
    let (down, up) = (link.down.bits_per_second.max(1), link.up.bits_per_second.max(1));
    let (larger, smaller, times) = if up > down.saturating_mul(MOST_UP) {
        ("up", "down", up / down)
    } else if down > up.saturating_mul(MOST_DOWN) {
        ("down", "up", down / up)
    } else {
        return None;
    };
    let [large, small] = [larger, smaller].map(|key| places.value(&path(at, key)));
    let (group, is_swap) = (group(at), larger == "up");
    let suspicion = if is_swap { "swapped, or kbit for mbit?" } else { "kbit for mbit?" };
    let problem = Problem::warning(
        format!("`{group}.{larger}` is {times} times `{group}.{smaller}`: {suspicion}"),
        large,
        format!("{larger} is {}", if is_swap { link.up } else { link.down }),
    )
    .and(small, format!("{smaller} is {}", if is_swap { link.down } else { link.up }));
    let in_bounds = |down: u64, up: u64| up <= down.saturating_mul(MOST_UP) && down <= up.saturating_mul(MOST_DOWN);
    let others = |key: &str| places.text(&path(at, key)).map(rates_of_other_units).unwrap_or_default().into_iter();
    let of_down =
        others("down").filter(|(_, rate)| in_bounds(rate.bits_per_second, up)).map(|(text, _)| ("down", text));
    let of_up = others("up").filter(|(_, rate)| in_bounds(down, rate.bits_per_second)).map(|(text, _)| ("up", text));
    let mut meant: Vec<String> = of_down.chain(of_up).map(|(key, text)| format!("`{key}: {text}`")).collect();
    if is_swap && in_bounds(up, down) {
        meant.insert(0, format!("`down: {}, up: {}`", link.up, link.down));
    }
    let meant = if meant.is_empty() { String::new() } else { format!("write {}; ", meant.join(" or ")) };
    Some(problem.help(format!("{meant}`down` is the rate to the clients, `up` the rate from them")))
}
