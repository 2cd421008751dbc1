//! The long output of `check --all`: the choices with their reasons, and every derived value.

use std::time::Duration;

use super::summary::{images, uses};
use crate::cli::table::table;
use crate::config::units::show_duration;
use crate::config::{Cache, DnsMode, Ground, HostPort, Peer, PeerName, Remote, Role, Settings, WarmAs, WhenDown};
use crate::derive::{Derived, Origin, Row, TargetKind};

/// RFC 8305, section 5: a client that has no connection after this long tries the next address as well.
const CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// Returns the output of `check --all` for an accepted file, in `width` columns. `file` is named as the operator did.
pub fn describe(file: &str, settings: &Settings, derived: &Derived, width: usize) -> String {
    let link = &settings.link;
    let urls = &derived.capacity.urls;
    let rows: Vec<Vec<String>> = derived.rows.iter().flat_map(lines).collect();
    [
        format!("{file}: ok, role {}\n\n", settings.role.as_str()),
        format!(
            "link: RTT {}, {} down, {} up\n  {}\n\n",
            show_duration(link.rtt),
            link.down,
            link.up,
            derived.model.sentence()
        ),
        format!("uses: {}, {} URLs in the cache's memory ({})\n\n", uses(&derived.capacity), urls.value, urls.reason),
        target(derived),
        format!("images: {}\n", images(settings, &derived.images)),
        siblings(settings),
        names(settings),
        parent(settings),
        pair(settings),
        timers(derived, width),
        "\ntransport: each value can be set under `transport:` by its name, one with a dot in its group\n".to_owned(),
        table(&["name", "value", "purpose and reason"], &rows, width),
    ]
    .concat()
}

/// The timers, each below the kind of traffic that it bounds.
fn timers(derived: &Derived, width: usize) -> String {
    let mut last = None;
    let mut rows = Vec::new();
    for (traffic, timer) in derived.timers.by_traffic() {
        let kind = if last.replace(traffic) == Some(traffic) { String::new() } else { traffic.to_string() };
        rows.push(vec![kind, show_duration(timer.time), timer.purpose.to_owned()]);
        rows.push(vec![String::new(), String::new(), format!("= {}", timer.formula)]);
    }
    [
        "\ntimers: each belongs to one kind of traffic, or to those it is named for\n",
        &table(&["traffic", "time", "event and reason"], &rows, width),
    ]
    .concat()
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

/// The caching proxies, and the work that is left to the operator there.
pub(super) fn parent(settings: &Settings) -> String {
    let Cache::Parents(parents) = &settings.cache else { return String::new() };
    let list = listed(parents);
    let (work, share) = match parents.len() {
        1 => ("looks names up again. It needs an access list; without one it reaches", ""),
        _ => (
            "look names up again. Each needs an access list; without one it reaches",
            "each URL has its own proxy; if that does not respond, another one takes over\n  ",
        ),
    };
    format!(
        "cache.parent {list} {work} private addresses\n  {share}\
         `longhaul render` writes the list: parent/squid.conf, parent/ip_allow.yaml for Traffic Server\n"
    )
}

/// Connections over the link.
fn kept_open(remote: &Remote) -> String {
    match remote.warm {
        0 => "all traffic shares one connection per worker: opening more in advance costs more than it saves\n"
            .to_owned(),
        warm => match remote.warm_as {
            WarmAs::Connections => format!("{warm} connections are open in advance\n"),
            WarmAs::Streams => format!("{warm} streams are open in advance, on one connection per worker\n"),
        },
    }
}

fn past_it(remote: &Remote) -> &'static str {
    match remote.when_down {
        WhenDown::Error => "",
        WhenDown::Direct => "  while the ground does not respond, this box connects to origins itself\n",
    }
}

/// The other end of a pair.
pub(super) fn pair(settings: &Settings) -> String {
    match &settings.role {
        Role::Edge => String::new(),
        Role::Remote(remote) => {
            let ground = match &remote.ground {
                Peer::Dialled { at } => format!("pair: {}, {}", grounds(at), kept_open(remote)),
                Peer::Dials { listen, names, .. } => format!(
                    "pair: the ground connects to {listen} as {}; all traffic uses its connections\n",
                    either(names)
                ),
            };
            [&ground, past_it(remote)].concat()
        }
        Role::Ground(ground) => [ends(ground), memory(settings, ground)].concat(),
    }
}

/// The most memory for what a ground remembers of its remotes.
fn memory(settings: &Settings, ground: &Ground) -> String {
    let clients = settings.limits.clients;
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let headers = format!(
        "headers of {clients} clients ({} MiB a worker, `limits.clients`)",
        mib(u64::from(clients) * header_compression_config::CLIENT_BYTES)
    );
    let objects = format!(
        "objects of {} remotes ({} MiB)",
        page_flights::STORES,
        mib(u64::try_from(page_flights::KNOWN_BYTES).unwrap_or(u64::MAX))
    );
    let pages = format!("pages for deltas ({} MiB)", mib(page_flights::BASES_BYTES));
    let all = [(ground.pack_headers, headers), (settings.page.bundle, objects), (settings.sends_deltas(), pages)];
    let on: Vec<String> = all.into_iter().filter(|(on, _)| *on).map(|(_, text)| text).collect();
    if on.is_empty() { String::new() } else { format!("  remembers at most {}\n", on.join(", ")) }
}

fn ends(ground: &Ground) -> String {
    match &ground.remote {
        Peer::Dials { listen, names, .. } => format!("pair: remotes connect to {listen} as {}\n", either(names)),
        Peer::Dialled { at } => {
            format!("pair: the remote is at {}; this end opens the connections\n", listed(at))
        }
    }
}

/// The grounds of a remote, in the order of their use.
fn grounds(at: &[HostPort]) -> String {
    match at {
        [one] => format!("the ground is at {one}"),
        several => format!("{} grounds, the first that responds: {}", several.len(), listed(several)),
    }
}

fn listed(at: &[impl ToString]) -> String {
    at.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The first of the accepted names.
fn either(names: &[PeerName]) -> String {
    const SHOWN: usize = 4;
    let shown = names.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} or {more} more names"),
    }
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
    let steered = settings.listen.dns.is_some() && (!settings.dns.domains.is_empty() || settings.dns.www);
    let raced = settings.link.rtt >= CONNECTION_ATTEMPT_DELAY && max_origin > 0;
    if !(steered && raced && settings.role == Role::Edge) {
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
