//! The long output of `check --all`: the choices with their reasons, and every derived value.

use std::time::Duration;

use longhaul_config::{DnsMode, Settings, show_duration};
use longhaul_derive::{Derived, Failover, LinkPlan, LinkQueue, MultipathUse, Origin, Packets, Row, TargetKind};
use longhaul_observe::table;

use super::lines::{encrypted, first_visits, images, listed, pair, parent, uses};

/// RFC 8305, section 5: a client that has no connection after this long tries the next address as well.
const CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Returns the output of `check --all` for an accepted file, in `width` columns. `file` is named as the operator did.
pub fn describe(file: &str, settings: &Settings, derived: &Derived, width: usize) -> String {
    let link = &settings.link;
    let rows: Vec<Vec<String>> = derived.rows.iter().flat_map(lines).collect();
    [
        format!("{file}: ok, role {}\n\n", settings.role.as_str()),
        format!(
            "link: RTT {}, {} down, {} up\n  {}\n",
            show_duration(link.rtt),
            link.down,
            link.up,
            derived.model.sentence()
        ),
        derived.packets.as_ref().map(packets).unwrap_or_default(),
        links(derived, width),
        "\n".to_owned(),
        format!("uses: {}\n\n", uses(&derived.capacity)),
        target(derived),
        format!("images: {}\n", images(settings, &derived.images)),
        siblings(settings),
        names(settings),
        encrypted(settings).map(|text| format!("encrypted: {text}\n")).unwrap_or_default(),
        first_visits(settings).map(|text| format!("instant: {text}\n")).unwrap_or_default(),
        parent(settings),
        pair(settings, derived),
        derived.failover.as_ref().map(patience).unwrap_or_default(),
        timers(derived, width),
        bounds(derived, width),
        shares(derived, width),
        link_queue(derived, width),
        "\ntransport: each value can be set under `transport:` by its name, one with a dot in its group\n".to_owned(),
        table(&["name", "value", "purpose and reason"], &rows, width),
    ]
    .concat()
}

/// Several links, and the use of each.
fn links(derived: &Derived, width: usize) -> String {
    if derived.links.is_empty() {
        return String::new();
    }
    let row = |plan: &LinkPlan| {
        let link = &plan.link;
        let mtu = link.mtu.map(|mtu| format!(", packets of {mtu} bytes")).unwrap_or_default();
        let rates = format!("RTT {}, {} down, {} up{mtu}", show_duration(link.rtt), link.down, link.up);
        let dead = format!("dead after {} = {}", show_duration(plan.dead_after), plan.dead_after_formula);
        let use_row = vec![link.name.clone(), plan.used.as_str().to_owned(), plan.why.to_owned()];
        let probe = format!("{dead}; while idle, probed every {}", show_duration(plan.idle_probe));
        [use_row, vec![format!("  {}", link.device), rates, probe]]
    };
    let rows: Vec<Vec<String>> = derived.links.iter().flat_map(row).collect();
    let (MultipathUse::Opens(why) | MultipathUse::Accepts(why) | MultipathUse::Off(why)) = derived.multipath;
    let state = if matches!(derived.multipath, MultipathUse::Off(_)) { "off" } else { "on" };
    format!("\nlinks, with Multipath TCP {state}: {why}\n{}", table(&["link", "use", "reason and watch"], &rows, width))
}

/// The sizes of packets on the link.
fn packets(packets: &Packets) -> String {
    let Packets { segment, datagram } = packets;
    format!(
        "  TCP segments of {} bytes ({}), QUIC packets of {} bytes\n",
        segment.value, segment.reason, datagram.value
    )
}

/// The timers, each below the kind of traffic that it bounds.
fn timers(derived: &Derived, width: usize) -> String {
    let mut last = None;
    let mut rows = Vec::new();
    for (traffic, timer) in derived.timers_by_traffic() {
        let kind = if last.replace(traffic) == Some(traffic) { "" } else { traffic };
        rows.push(vec![kind.to_owned(), show_duration(timer.time), timer.purpose.to_owned()]);
        rows.push(vec![String::new(), String::new(), format!("= {}", timer.formula)]);
    }
    [
        "\ntimers: each belongs to one kind of traffic, or to those it is named for\n",
        &table(&["traffic", "time", "event and reason"], &rows, width),
    ]
    .concat()
}

/// The bounds that follow from the limits, the role and the values below.
fn bounds(derived: &Derived, width: usize) -> String {
    let lines = |[name, value, reason]: [String; 3]| [vec![name, value], vec![String::new(), format!("= {reason}")]];
    let rows: Vec<Vec<String>> = derived.bounds.rows().into_iter().flat_map(lines).collect();
    ["\nbounds: the most that a hop accepts or holds\n", &table(&["bound", "value and reason"], &rows, width)].concat()
}

/// The limits below which the clients share the link.
fn shares(derived: &Derived, width: usize) -> String {
    let lines = |[name, value, reason]: [String; 3]| [vec![name, value], vec![String::new(), format!("= {reason}")]];
    let rows: Vec<Vec<String>> = derived.neighbours.rows().into_iter().flat_map(lines).collect();
    if rows.is_empty() {
        return String::new();
    }
    let title = "\nneighbours: the payload of each direction, of which every client has a share\n";
    let follows = if derived.links.is_empty() {
        ""
    } else {
        "With several links, these are the limits of the first one. They follow the rates of the links in use.\n"
    };
    [title, &table(&["direction", "value and reason"], &rows, width), follows].concat()
}

/// The queue of the link's device.
fn link_queue(derived: &Derived, width: usize) -> String {
    let LinkQueue::Shaped(shaping) = &derived.link_queue else { return String::new() };
    let lines = |[name, value, reason]: [String; 3]| [vec![name, value], vec![String::new(), format!("= {reason}")]];
    let rows: Vec<Vec<String>> = derived.link_queue.rows().into_iter().flat_map(lines).collect();
    let title = format!(
        "\nqueue of {}, for all packets that this box sends over the link: `cake`, or `htb` with the fairest queue that the \
         kernel makes\n",
        shaping.device
    );
    title + &table(&["queue", "value and reason"], &rows, width)
}

/// The other boxes with the proxy's addresses.
fn siblings(settings: &Settings) -> String {
    let siblings = &settings.proxy.siblings;
    if siblings.is_empty() {
        return String::new();
    }
    let list = listed(siblings);
    format!(
        "siblings: {list}\n  connections to the proxy's addresses that began there go on there, by rules of `longhaul host`; \
         no router may stand between the boxes\n"
    )
}

/// The failed checks and the retries of a ground that does not respond.
fn patience(failover: &Failover) -> String {
    let Failover { failures, retries, .. } = failover;
    let plural = if failures.value == 1 { "" } else { "s" };
    format!(
        "  a ground is down after {} failed health check{plural} ({}); requests that may be sent twice are retried {} times ({})\n",
        failures.value, failures.reason, retries.value, retries.reason
    )
}

fn target(derived: &Derived) -> String {
    let choice = &derived.target;
    let what = match choice.kind {
        TargetKind::Nothing => "moved URLs: none".to_owned(),
        kind => format!("moved URLs: to {} {}", kind.as_str(), choice.authorities.join(", ")),
    };
    let warning = choice.warning.as_ref().map(|warning| format!("  warning: {warning}\n")).unwrap_or_default();
    format!("{what}\n  {}\n{warning}", choice.reason)
}

/// The effect of a steered response's addresses on browsers. A remote responds with its own alone.
fn names(settings: &Settings) -> String {
    let DnsMode::Prepend { max_origin } = settings.dns.mode else { return String::new() };
    let steered = settings.listen.dns.is_some() && settings.dns.has_lists();
    let raced = settings.link.rtt >= CONNECTION_ATTEMPT_DELAY && max_origin > 0;
    if !(steered && raced && settings.role.is_alone()) {
        return String::new();
    }
    format!(
        "\nsteered names: the proxy's address first, then the origin's\n  browsers that race addresses (RFC 8305) open each \
         connection twice on this link, because the first takes more than {} to respond; \
         `dns: {{ mode: replace }}` prevents it, but clients lose the direct path to the origin\n",
        show_duration(CONNECTION_ATTEMPT_DELAY)
    )
}

/// Two lines a value: what it is for, then where it came from.
fn lines(row: &Row) -> [Vec<String>; 2] {
    let why = match row.origin {
        Origin::Derived => format!("= {} [{}]", row.formula, row.source),
        Origin::Overridden { line } => format!("= set on line {line}; derived: {} [{}]", row.formula, row.source),
    };
    [vec![row.name.to_owned(), row.value.clone(), row.purpose.to_owned()], vec![String::new(), String::new(), why]]
}
