//! Facts that both the short and the long output of `check` print.

use longhaul_config::{Cache, Ground, HostPort, Images, Peer, PeerName, Remote, Role, Settings, WarmAs, WhenDown};
use longhaul_derive::{Capacity, ImagesChoice};

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
