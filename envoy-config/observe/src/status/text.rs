//! The status in words, for a terminal.

use longhaul_config::Sockets;

use super::words::{millis, size, time};
use super::{Certificate, Child, DnsCounts, Pages, Status};
use crate::bill::GroupReport;
use crate::compare::{Difference, Median};
use crate::report::{LinkState, ResolverReport};
use crate::table;

const WIDTH: usize = 120;
/// Reasons that are shown; the others are summed.
const TOP: usize = 5;

/// A label and its text.
type Row = (&'static str, String);

/// Returns the report.
pub(super) fn text(status: &Status) -> String {
    let mut rows =
        vec![row("longhaul", &format!("{}, process {}, up {}", status.version, status.pid, time(status.uptime_s)))];
    rows.push(row("configuration", &configuration(status)));
    if let Some(refused) = &status.config.refused {
        let first = refused.why.lines().next().unwrap_or_default();
        rows.push(row("last refused", &format!("{first}{}", if refused.standing { "" } else { " (fixed since)" })));
    }
    rows.extend(status.last_problems.iter().take(TOP).map(|problem| row("last problem", &problem.words())));
    rows.push(row("Envoy", &child(&status.envoy)));
    rows.push(row("CoreDNS", &child(&status.coredns)));
    rows.extend(status.images.as_ref().map(|images| row("images", &child(images))));
    rows.extend(status.objects.as_ref().map(|objects| row("objects", &child(objects))));
    rows.push(row("listening", &listening(status)));
    rows.extend(status.certificates.iter().map(|certificate| row("certificate", &self::certificate(certificate))));
    rows.extend(pair(status));
    rows.extend(parents(status));
    rows.extend(status.links.iter().map(|link| row("link", &one_of_links(link, status.at))));
    rows.extend(measured_link(status));
    rows.extend(compared(status));
    rows.extend(status.groups.iter().map(|group| row("group", &self::group(group))));
    rows.extend(traffic(status));
    rows.extend(dns(status));
    let verdict = if status.problems.is_empty() { "ok\n".to_owned() } else { lines("problem", &status.problems) };
    format!("{verdict}{}{}", lines("warning", &status.warnings), table::rows(&rows, WIDTH))
}

/// Returns the problems, and the parts of a request's way that cost the time.
pub(super) fn why(status: &Status) -> String {
    let answer = match &status.why {
        Some(why) => why.text(),
        None => "Nothing is measured yet: ask again when this box has run for a minute.\n".to_owned(),
    };
    format!(
        "{}{}",
        lines("problem", &status.problems),
        answer.lines().map(|line| printable(line) + "\n").collect::<String>()
    )
}

pub(super) fn lines<T: ToString>(kind: &str, items: &[T]) -> String {
    let words = items.iter().map(|item| printable(&item.to_string()));
    words.flat_map(|words| [kind.to_owned(), ": ".to_owned(), words, "\n".to_owned()]).collect()
}

fn row(name: &'static str, what: &str) -> Row {
    (name, printable(what))
}

/// Removes control characters. The report of another user's run may hold any text, and this may be root's terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).collect()
}

fn configuration(status: &Status) -> String {
    let config = &status.config;
    let hash = config.sha256.get(..12).unwrap_or_default();
    let changes = match config.changes {
        0 => "unchanged since the start".to_owned(),
        1 => "1 change applied".to_owned(),
        changes => format!("{changes} changes applied"),
    };
    format!("{} ({hash}), in force for {}, {changes}", config.file.display(), time(config.in_force_s))
}

fn child(child: &Child) -> String {
    let state = if child.up { "up" } else { "DOWN" };
    let version = child.version.as_ref().map(|version| format!("{version}, ")).unwrap_or_default();
    let since = child.uptime_s.map(|uptime| format!(" {}", time(uptime))).unwrap_or_default();
    let restarts = match (child.restarts, &child.last_end) {
        (0, _) => ", no restarts".to_owned(),
        (count, Some(how)) => format!(", restarts: {count}, the last one because it {how}"),
        (count, None) => format!(", restarts: {count}"),
    };
    format!("{version}{state}{since}{restarts}")
}

fn listening(status: &Status) -> String {
    let listen = &status.listen;
    let of_clients = |sockets: &Option<Sockets>| sockets.as_ref().map(ToString::to_string);
    let sockets = [
        ("http", of_clients(&listen.http)),
        ("split", listen.split.map(|socket| socket.to_string())),
        ("tls", of_clients(&listen.tls)),
        ("dns", of_clients(&listen.dns)),
        ("metrics", listen.metrics.map(|socket| socket.to_string())),
        ("status", listen.status.map(|socket| socket.to_string())),
    ];
    let words: Vec<String> =
        sockets.iter().filter_map(|(key, socket)| socket.as_ref().map(|socket| format!("{key} {socket}"))).collect();
    words.join(", ")
}

fn certificate(certificate: &Certificate) -> String {
    let left = match certificate.days_left {
        days if days < 0 => "EXPIRED".to_owned(),
        days => format!("{days} days left"),
    };
    format!("{}: {left} ({})", certificate.of, certificate.file.display())
}

/// The link of a pair.
fn pair(status: &Status) -> Vec<Row> {
    let Some(pair) = &status.pair else { return Vec::new() };
    let other = match (&status.ground, pair.warm) {
        (Some(ground), _) => format!("the ground {ground}"),
        (None, Some(_)) => "the ground".to_owned(),
        (None, None) => "remotes".to_owned(),
    };
    let open = match (pair.up, pair.warm) {
        (false, _) => format!("{other}: NOT CONNECTED"),
        (true, None | Some(0)) => format!("{other}: {} connections", pair.pipe),
        (true, Some(warm)) => format!("{other}: {} connections, {warm} warm and unused", pair.pipe),
    };
    let headers = &pair.headers;
    let ratio = headers.ratio.map(|ratio| format!(" ({:.0} %)", ratio * 100.0)).unwrap_or_default();
    let mut rows = vec![row("link", &open)];
    if let Some(ports) = &pair.other_ports {
        let words = format!("{} connections, {} of them past the pipe", ports.connections, ports.direct);
        rows.push(row("other ports", &words));
    }
    rows.push(row("headers", &format!("{} to {} bytes{ratio}", headers.plain_bytes, headers.packed_bytes)));
    if let Some(bundled) = &pair.bundled {
        let objects = match bundled.named {
            None => format!("{} requests served with objects that came ahead", bundled.objects),
            Some(named) => format!("{} objects sent ahead, {named} named that the remote has", bundled.objects),
        };
        rows.push(row("bundled", &format!("{objects}; {} pages", bundled.pages)));
    }
    rows
}

/// The caching proxies of `cache.parent`.
fn parents(status: &Status) -> Option<Row> {
    let state = |up| if up { "up" } else { "DOWN" };
    let words = status.parents.iter().map(|parent| format!("{} {}", parent.address, state(parent.up)));
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| row("parents", &words.join(", ")))
}

/// The use of the link by a group of clients.
fn group(group: &GroupReport) -> String {
    let GroupReport { name, weight, today, this_month, .. } = group;
    let quota = group.quota.as_ref().map(|quota| {
        let state = if quota.slow { "; SLOW: each client has a tenth of the weight" } else { "" };
        format!("; quota {} of {} this {}{state}", size(quota.used), size(quota.bytes), quota.per)
    });
    format!(
        "{name}: {}today {} down, {} up{}; this month {} down, {} up{}",
        weight.map(|weight| format!("weight {weight}, ")).unwrap_or_default(),
        size(today.down),
        size(today.up),
        weight.map(|_| format!(", {}", time(today.seconds))).unwrap_or_default(),
        size(this_month.down),
        size(this_month.up),
        quota.unwrap_or_default()
    )
}

/// One of several links.
fn one_of_links(link: &LinkState, now: u64) -> String {
    let state = match (link.alive, &link.address) {
        (true, _) => "up",
        (false, Some(_)) => "DOWN",
        (false, None) => "DOWN (no address)",
    };
    let rtt = link.rtt_ms.map(|rtt| format!(", RTT {rtt} ms")).unwrap_or_default();
    let deaths = match link.deaths {
        0 => String::new(),
        1 => ", failed once".to_owned(),
        several => format!(", failed {several} times"),
    };
    let price = if link.metered { ", metered" } else { "" };
    let connections = match (link.multipath + link.plain, link.plain) {
        (0, _) => String::new(),
        (all, 0) => format!(", connections {all}"),
        (all, plain) => format!(", connections {all} ({plain} of plain TCP)"),
    };
    let stood_in = match link.stood_in_s {
        0 => String::new(),
        seconds => format!(
            "; stood in for {}: {} down, {} up",
            time(seconds),
            size(link.stood_in_down_bytes),
            size(link.stood_in_up_bytes)
        ),
    };
    format!(
        "{} ({}, {}{price}): {state} {}{rtt}, {} down, {} up{connections}{deaths}{stood_in}",
        link.name,
        link.device,
        link.used,
        time(now.saturating_sub(link.changed_at)),
        size(link.down_bytes),
        size(link.up_bytes)
    )
}

/// The values of the link that were measured, beside the configured ones.
fn measured_link(status: &Status) -> Option<Row> {
    let (link, measured) = (&status.link, &status.link_measured);
    let configured = if measured.direction == "up" { &link.up } else { &link.down };
    let values = [("rtt", &measured.rtt, &link.rtt), (measured.direction.as_str(), &measured.rate, configured)];
    let words = values
        .map(|(key, value, configured)| value.as_ref().map(|value| format!("{key} {value} (configured {configured})")));
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| row("measured link", &words.join(", ")))
}

/// The connections of clients that pass untouched, beside those that Longhaul serves.
fn compared(status: &Status) -> Vec<Row> {
    let Some(compared) = status.compared.as_ref().filter(|compared| compared.fault.is_none()) else {
        return Vec::new();
    };
    let percent = compared.percent;
    let head = if compared.is_empty() {
        format!(
            "{percent}% of the clients pass untouched; no connection was seen yet. Load the packet rules: `longhaul host FILE --clients IF --apply`"
        )
    } else {
        format!("{percent}% of the clients pass untouched, and {percent}% are measured beside them")
    };
    let (direct, accelerated, difference) = (&compared.direct, &compared.accelerated, &compared.difference);
    let of = |direct: &Median, accelerated: &Median, difference: Difference| {
        let sign = match difference {
            Difference::Unknown => String::new(),
            Difference::NoneShown => "; no difference shown".to_owned(),
            Difference::Faster { by_us } => format!("; {} shorter", millis(by_us)),
            Difference::Slower { by_us } => format!("; {} longer", millis(by_us)),
        };
        format!("untouched {}, with Longhaul {}{sign}", median(direct), median(accelerated))
    };
    vec![
        row("compared", &head),
        row("set-up", &of(&direct.set_up, &accelerated.set_up, difference.set_up)),
        row("first bytes", &of(&direct.first_bytes, &accelerated.first_bytes, difference.first_bytes)),
    ]
}

/// A median with its 95 % interval.
fn median(median: &Median) -> String {
    match median {
        Median::Known { median_us, low_us, high_us, connections } => {
            format!("{} ({} to {}, {connections} connections)", millis(*median_us), millis(*low_us), millis(*high_us))
        }
        Median::TooFew { connections, needed } => format!("{connections} of {needed} connections"),
    }
}

fn traffic(status: &Status) -> Vec<Row> {
    let Some(traffic) = &status.traffic else { return Vec::new() };
    // Pages are rewritten, cached and compressed at the wired end of the link.
    let wired = status.role != "remote";
    let (clients, pages, cache, upstream) = (&traffic.clients, &traffic.pages, &traffic.cache, &traffic.upstream);
    let mut rows = vec![row(
        if status.role == "ground" { "remotes" } else { "clients" },
        &format!(
            "{} requests, {} connections open, {} passed through as TLS",
            clients.requests, clients.connections, clients.passed_through
        ),
    )];
    if let Some(counts) = pages {
        rows.extend(self::pages(counts));
    }
    if wired {
        rows.push(row("compressed", &format!("{} to {} bytes", clients.bytes_to_compress, clients.bytes_compressed)));
    }
    if let Some(cache) = cache {
        let stale = if cache.stale > 0 { format!(" ({} stale)", cache.stale) } else { String::new() };
        rows.push(row(
            "cache",
            &format!(
                "{} hits{stale}, {} misses, {} not cacheable; {} of {} MiB used",
                cache.hits,
                cache.misses,
                cache.uncacheable,
                cache.bytes >> 20,
                cache.limit_bytes >> 20
            ),
        ));
    }
    // A remote has some only where it goes to origins itself.
    if wired || upstream.requests > 0 {
        let reuse = upstream.reuse.map(|reuse| format!(", reuse {:.0} %", reuse * 100.0)).unwrap_or_default();
        rows.push(row(
            "origins",
            &format!(
                "{} requests on {} connections{reuse}, {} open",
                upstream.requests, upstream.connections, upstream.open
            ),
        ));
    }
    rows
}

fn pages(pages: &Pages) -> Vec<Row> {
    let mut rows = vec![row(
        "pages",
        &format!(
            "{} rewritten, {} URLs moved, {} left{}",
            pages.rewritten,
            pages.urls_moved,
            sum(&pages.urls_left),
            top(&pages.urls_left)
        ),
    )];
    if !pages.bail_outs.is_empty() {
        rows.push(row(
            "incomplete",
            &format!("{} pages rewritten only in part{}", sum(&pages.bail_outs), top(&pages.bail_outs)),
        ));
    }
    if pages.redirected > 0 || !pages.refused.is_empty() {
        let refused = format!("{} refused{}", sum(&pages.refused), top(&pages.refused));
        rows.push(row(
            "own origin",
            &format!("{} documents redirected to their true URL, {refused}", pages.redirected),
        ));
    }
    if let Some(mean) = &pages.per_page {
        rows.push(row(
            "saved",
            &format!(
                "an estimated {:.1} round trips and {:.0} bytes of connection setup per page",
                mean.round_trips_saved, mean.link_bytes_saved
            ),
        ));
    }
    rows
}

/// The lookups of a remote, by what they cost.
fn round_trips(dns: &DnsCounts) -> Option<Row> {
    let percent = dns.without_round_trip_percent()?;
    let instant = if dns.instant > 0 { format!(", {} of them answered at once", dns.instant) } else { String::new() };
    Some(row(
        "lookups",
        &format!(
            "{percent} % without a round trip: {} remembered ({} of them stale), {} pushed by the ground; {} asked{instant}",
            dns.remembered - dns.pushed,
            dns.stale,
            dns.pushed,
            dns.asked
        ),
    ))
}

/// The names that were sent before they were asked.
fn pushed(dns: &DnsCounts) -> Option<Row> {
    let text = match (dns.pushed_bytes, dns.sent_bytes) {
        (0, 0) => return None,
        (0, sent) => format!("{sent} bytes of responses sent to remotes before they asked"),
        (came, _) => {
            format!("{came} bytes of responses came before they were asked, {} of them used", dns.pushed_used_bytes)
        }
    };
    Some(row("names ahead", &text))
}

fn dns(status: &Status) -> Vec<Row> {
    let Some(dns) = &status.dns else {
        let why = if status.listen.dns.is_none() { "not counted: `listen.dns` is off" } else { "no counts" };
        return vec![row("names", why)].into_iter().chain(resolvers(status)).collect();
    };
    let off = if dns.steering == Some(false) { "STEERING IS OFF; " } else { "" };
    let failed = if dns.failed > 0 { format!(", {} failed", dns.failed) } else { String::new() };
    let names = row(
        "names",
        &format!(
            "{off}{} questions: {} steered, {} suppressed, {} untouched{failed}{}",
            dns.questions,
            dns.steered,
            dns.suppressed,
            dns.untouched,
            top(&dns.left)
        ),
    );
    [names].into_iter().chain(round_trips(dns)).chain(pushed(dns)).chain(resolvers(status)).collect()
}

fn resolvers(status: &Status) -> Option<Row> {
    let state = |resolver: &ResolverReport| if resolver.up { "up" } else { "DOWN" };
    let words: Vec<String> =
        status.resolvers.iter().map(|resolver| format!("{} {}", resolver.address, state(resolver))).collect();
    (!words.is_empty()).then(|| row("resolvers", &words.join(", ")))
}

fn sum(reasons: &[(String, u64)]) -> u64 {
    reasons.iter().map(|(_, count)| count).sum()
}

/// ` (cors 12, csp 3, ...)`: the most frequent reasons.
fn top(reasons: &[(String, u64)]) -> String {
    if reasons.is_empty() {
        return String::new();
    }
    let mut words: Vec<String> = reasons.iter().take(TOP).map(|(reason, count)| format!("{reason} {count}")).collect();
    let rest: u64 = reasons.iter().skip(TOP).map(|(_, count)| count).sum();
    if rest > 0 {
        words.push(format!("others {rest}"));
    }
    format!(" ({})", words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_reasons_are_named_and_the_rest_is_summed() {
        let reasons: Vec<(String, u64)> = (1..=7).map(|n| (format!("r{n}"), 10 - n)).collect();
        assert_eq!(top(&reasons), " (r1 9, r2 8, r3 7, r4 6, r5 5, others 7)");
        assert_eq!(top(&[]), "");
    }
}
