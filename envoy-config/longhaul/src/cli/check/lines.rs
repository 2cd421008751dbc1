//! Facts that both the short and the long output of `check` print.

use longhaul_config::{
    Cache, DialledPorts, Ground, HostPort, Images, Log, LogWish, LoggedClients, LookupTransport, NotEncrypted,
    NotInstant, OtherPorts, PeerName, Remote, Role, Settings, WhenDown, show_duration,
};
use longhaul_derive::{Capacity, Carrier, Derived, ImagesChoice, Warm};

/// Envoy's threads and memory, each with its reason.
pub(super) fn uses(capacity: &Capacity) -> String {
    let Capacity { workers, heap, .. } = capacity;
    let plural = if workers.value == 1 { "" } else { "s" };
    format!("{} worker{plural} ({}), {} of heap ({})", workers.value, workers.reason, heap.value, heap.reason)
}

/// The variants of images: on or off, and the reason.
pub(super) fn images(settings: &Settings, choice: &ImagesChoice) -> String {
    let Images { quality, png_quality, .. } = &settings.images;
    let png = png_quality.map_or_else(|| "lossless".to_owned(), |quality| format!("of quality {quality}"));
    if choice.on {
        format!("WebP of quality {quality} for JPEG, and {png} for PNG ({})", choice.reason)
    } else {
        format!("as their origins send them ({})", choice.reason)
    }
}

/// The encrypted lookups of an edge, or the reason why there are none. The operator's own wish needs no reason.
pub(super) fn encrypted(settings: &Settings) -> Option<String> {
    match settings.encrypted_lookups() {
        Ok(lookups) => {
            let shown = |one: &LookupTransport| format!("{} {}", one.as_str().to_uppercase(), one.port());
            let transports: Vec<String> = lookups.transports.iter().map(shown).collect();
            let names = lookups.certificates.iter().flat_map(|(_, names)| names.iter().map(ToString::to_string));
            Some(format!(
                "lookups over {} at {}; clients learn of them while the certificate is valid (`dns.encrypted`)",
                transports.join(", "),
                names.collect::<Vec<_>>().join(", ")
            ))
        }
        Err(NotEncrypted::Off | NotEncrypted::Pair | NotEncrypted::NoDns) => None,
        Err(why) => Some(format!("no lookups over TLS, QUIC or HTTPS: {why}")),
    }
}

/// Browsers' first lookups at a remote with DNS, or the reason why they wait for the ground.
pub(super) fn first_visits(settings: &Settings) -> Option<String> {
    match settings.first_visits() {
        Ok(range) => Some(format!(
            "a browser's first lookup of a name is answered at once, from {range}; other programs wait for the ground (`dns.instant`)"
        )),
        Err(NotInstant::Off | NotInstant::NotRemote | NotInstant::NoDns) => None,
        Err(why) => Some(format!("first lookups wait for the ground: {why}")),
    }
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
fn kept_open(warm: Warm) -> String {
    match (warm.number, warm.carrier) {
        (0, _) => "all traffic shares one connection per worker: opening more in advance costs more than it saves\n"
            .to_owned(),
        (number, Carrier::Connections) => format!("{number} connections are open in advance\n"),
        (number, Carrier::Streams) => format!("{number} streams are open in advance, on one connection per worker\n"),
    }
}

/// The TCP ports beside web and DNS.
fn other_ports(settings: &Settings) -> String {
    let Some(OtherPorts { dialled, .. }) = &settings.listen.tcp else { return String::new() };
    let ports = match dialled {
        DialledPorts::All => format!("all other TCP ports but {}", DialledPorts::NEVER),
        DialledPorts::Listed(listed) => {
            format!("TCP ports {}", listed.iter().map(u16::to_string).collect::<Vec<_>>().join(", "))
        }
    };
    format!("  {ports} cross the pipe, too, if `upstream.ports` of the ground lists them\n")
}

fn past_it(remote: &Remote) -> &'static str {
    match remote.when_down {
        WhenDown::Error => "",
        WhenDown::Direct => "  while the ground does not respond, this box connects to origins itself\n",
    }
}

/// The other end of a pair.
pub(super) fn pair(settings: &Settings, derived: &Derived) -> String {
    match &settings.role {
        Role::Edge => String::new(),
        Role::Remote(remote) => {
            let warm = derived.warm.map(kept_open).unwrap_or_default();
            let ground = format!("pair: {}, {warm}", grounds(&remote.grounds));
            [&ground, other_ports(settings).as_str(), past_it(remote)].concat()
        }
        Role::Ground(ground) => [remotes(ground), memory(settings, ground)].concat(),
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

fn remotes(ground: &Ground) -> String {
    format!("pair: remotes connect to {} as {}\n", ground.listen, either(&ground.remotes))
}

/// The grounds of a remote, in the order of their use.
fn grounds(at: &[HostPort]) -> String {
    match at {
        [] => "no ground, as if none responded".to_owned(),
        [one] => format!("the ground is at {one}"),
        several => format!("{} grounds, the first that responds: {}", several.len(), listed(several)),
    }
}

pub(super) fn listed(at: &[impl ToString]) -> String {
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

/// The access log. None if it is off.
pub(super) fn access_log(log: &Log) -> Option<String> {
    let place = match &log.access {
        LogWish::Off => return None,
        LogWish::On => "the service's folder for logs".to_owned(),
        LogWish::Stderr => return Some("stderr".to_owned()),
        LogWish::File(path) => path.display().to_string(),
    };
    let clients = match log.clients {
        LoggedClients::Cut => "cut",
        LoggedClients::Whole => "whole",
    };
    Some(format!(
        "{place}: requests and connections, clients' addresses {clients}, kept for {}",
        show_duration(log.keep)
    ))
}
