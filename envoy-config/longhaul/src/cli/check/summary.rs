//! The short output of `check`: what the box will do and why, a line each.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use longhaul_config::share::Share;
use longhaul_config::{
    Cache, ClientGroup, Intercept, Level, LinkModel, Price, Rate, Role, Settings, Sockets, Validity, show_duration,
};
use longhaul_derive::{
    Compressors, CongestionControl, Derived, LevelInUse, Limit, LinkPlan, LinkQueue, LinkUse, Neighbours, Origin,
    Shaping, TargetKind, Unshared, Value, names_ahead,
};

use super::lines::{access_log, encrypted, first_visits, images, pair, parent, uses};

/// Returns labels and texts.
pub(super) fn summary(settings: &Settings, derived: &Derived) -> Vec<(&'static str, String)> {
    let changes_pages = settings.role.changes_pages();
    let all = [
        Some(("link", link(settings, &derived.model))),
        links(&derived.links).map(|text| ("links", text)),
        sends(&derived.congestion_control).map(|text| ("sends", text)),
        Some(("opens", opens(settings))),
        Some(("uses", uses(&derived.capacity))),
        clients(settings).map(|text| ("clients", text)),
        neighbours(settings, &derived.neighbours).map(|text| ("neighbours", text)),
        groups(&settings.clients).map(|text| ("groups", text)),
        link_queue(&derived.link_queue).map(|text| ("queue", text)),
        names(settings).map(|text| ("names", text)),
        first_visits(settings).map(|text| ("instant", text)),
        // A box without a name of its own has nothing to encrypt with, which surprises nobody.
        encrypted(settings).filter(|_| !settings.proxy.secure_names.is_empty()).map(|text| ("encrypted", text)),
        settings.compare.map(|share| ("compare", compare(share))),
        changes_pages.then(|| ("moved URLs", target(settings, derived))),
        (changes_pages || settings.cache.is_on_disk()).then(|| ("cache", cache(settings))),
        changes_pages.then(|| ("compression", compression(&derived.compression))),
        Some(("page", page(settings, &derived.model))),
        derived.images.on.then(|| ("images", images(settings, &derived.images))),
        settings
            .role
            .identity()
            .map(|_| ("pair", joined(&pair(settings, derived)).trim_start_matches("pair: ").to_owned())),
        certificates(settings).map(|text| ("certificates", text)),
        access_log(&settings.log).map(|text| ("log", text)),
        Some(("more", "`--all` prints each derived value and its formula, `--json` prints everything".to_owned())),
    ];
    all.into_iter().flatten().collect()
}

fn link(settings: &Settings, model: &LinkModel) -> String {
    let link = &settings.link;
    if let [first, ..] = settings.links.as_slice() {
        let slow = show_duration(settings.slowest_link().rtt);
        let rtt = show_duration(link.rtt);
        return format!("{}, RTT {rtt}, time-outs for {slow}: {}", first.name, model.class.verdict());
    }
    let price = match link.price {
        Price::Free => "",
        Price::Metered => ", metered",
    };
    format!("RTT {}, {} down, {} up{price}: {}", show_duration(link.rtt), link.down, link.up, model.class.verdict())
}

/// Several links, and the use of each. None with one.
fn links(links: &[LinkPlan]) -> Option<String> {
    let words = |plan: &LinkPlan| {
        let why = if plan.used == LinkUse::Preferred { String::new() } else { format!(", because {}", plan.why) };
        format!("{} ({}) is {}{why}", plan.link.name, plan.link.device, plan.used.as_str())
    };
    (!links.is_empty()).then(|| links.iter().map(words).collect::<Vec<_>>().join("; "))
}

/// The congestion control, if it is one that a lost packet slows down and the operator did not choose it.
fn sends(control: &Value<CongestionControl>) -> Option<String> {
    (control.value == CongestionControl::HostDefault && control.origin == Origin::Derived).then(|| {
        let why = &control.formula;
        format!("by a congestion control that each lost packet slows down: {why}; `longhaul netcheck` prints the cure")
    })
}

fn opens(settings: &Settings) -> String {
    let listen = &settings.listen;
    let shown = |sockets: &Option<Sockets>| sockets.as_ref().map(ToString::to_string);
    let (http, split) =
        if settings.role.meets_clients() { (Some(&listen.http), None) } else { (None, Some(&listen.http)) };
    let sockets: [(&str, Option<String>); 8] = [
        ("http", http.map(ToString::to_string)),
        ("tls", shown(&listen.tls)),
        ("dns", shown(&listen.dns)),
        ("tcp", listen.tcp.as_ref().map(|tcp| tcp.sockets.to_string())),
        ("split", split.map(ToString::to_string)),
        ("metrics", listen.metrics.map(|metrics| metrics.socket.to_string())),
        ("status", listen.status.map(|status| status.socket.to_string())),
        ("health", listen.health.map(|at| at.to_string())),
    ];
    let open = sockets.into_iter().filter_map(|(key, socket)| socket.map(|socket| format!("{key} {socket}")));
    open.collect::<Vec<_>>().join(", ")
}

/// The ways on which clients arrive. None at a ground.
fn clients(settings: &Settings) -> Option<String> {
    let served = settings.role.meets_clients();
    let rule = match settings.listen.intercept {
        Intercept::Redirect => "a redirect rule (`longhaul host`)",
        Intercept::Tproxy => "a tproxy rule (`longhaul host`)",
        Intercept::None => "no packet rule",
    };
    let listed = settings.dns.steered_entries();
    let names = match (settings.dns.www, listed) {
        _ if settings.listen.dns.is_none() => "DNS is off".to_owned(),
        (false, 0) => "DNS steers no name".to_owned(),
        (false, 1) => "DNS steers 1 listed name".to_owned(),
        (false, listed) => format!("DNS steers {listed} listed names"),
        (true, 0) => "DNS steers all names with `www`".to_owned(),
        (true, listed) => format!("DNS steers all names with `www` and {listed} listed names"),
    };
    let stay = if settings.listen.dns.is_some() && settings.dns.canary {
        "; canary names keep browsers on this DNS (`dns.canary`)"
    } else {
        ""
    };
    served.then(|| format!("{rule}; {names}{stay}"))
}

/// The time for which a remote keeps DNS responses, and the responses that a pair sends unasked. None at an edge: its
/// queries do not cross the link.
fn names(settings: &Settings) -> Option<String> {
    match settings.role {
        Role::Edge => None,
        Role::Ground(_) => settings.dns.push.then(|| match names_ahead(&settings.link) {
            0 => "those that usually follow one are sent to a remote that asks for it".to_owned(),
            rate => format!(
                "those that usually follow one are sent to a remote that asks for it, and popular ones at {} while it asks nothing (a fiftieth of the link)",
                Rate { bits_per_second: rate * 8 }
            ),
        }),
        Role::Remote(_) => settings.listen.dns.as_ref().map(|_| match settings.dns.remember {
            Duration::ZERO => "forgotten within an hour after their TTL, and at a restart".to_owned(),
            time => format!(
                "remembered for {}, also over a restart; stale ones are served at once, so a program on a port that the pair does not carry may dial an old address",
                show_duration(time)
            ),
        }),
    }
}

/// Returns None for a single box without `link.fill`, and for one whose device is shaped.
fn neighbours(settings: &Settings, neighbours: &Neighbours) -> Option<String> {
    match neighbours {
        Neighbours::Unshared(Unshared::Off) if settings.role == Role::Edge => None,
        Neighbours::Unshared(Unshared::Edge) if settings.link.device.is_some() => None,
        Neighbours::Unshared(why) => Some(format!("no shares: {}", why.reason())),
        Neighbours::Fair { down, up, needs_native } => {
            let shown = |limit: &Option<Limit>| limit.as_ref().map_or("no limit".to_owned(), ToString::to_string);
            let whose = match &settings.role {
                Role::Ground(ground) if ground.remotes.len() > 1 || *needs_native => {
                    "each client of a remote has an equal share of its"
                }
                _ => "each client has an equal share of",
            };
            let whose =
                if settings.clients.is_empty() { whose } else { "clients share, by the weights of their groups," };
            let but =
                if *needs_native { "; with wasm filters nobody has, because `split.peer` has a pattern" } else { "" };
            Some(format!("{whose} {} down, {} up (`link.fill`){but}", shown(down), shown(up)))
        }
    }
}

/// The groups of clients, with the weight of each client. None without any.
fn groups(groups: &[ClientGroup]) -> Option<String> {
    let words = |group: &ClientGroup| {
        let quota =
            group.quota.map(|quota| format!(", {} each {}, then a tenth of it", quota.size, quota.per.as_str()));
        format!("{} (weight {}{})", group.name, group.weight, quota.unwrap_or_default())
    };
    let words: Vec<String> = groups.iter().map(words).collect();
    (!words.is_empty()).then(|| format!("{}; each other client has weight 1 (`clients`)", words.join(", ")))
}

/// The queue that `longhaul host` makes. None without `link.device`.
fn link_queue(queue: &LinkQueue) -> Option<String> {
    match queue {
        LinkQueue::Off => None,
        LinkQueue::SeveralLinks => Some(format!("no queue for `link.device`: {}", LinkQueue::SEVERAL_LINKS)),
        LinkQueue::Shaped(Shaping { device, rate, formula, .. }) => Some(format!(
            "{device} sends at most {rate}, {formula}. All packets count, also those that bypass Longhaul. `longhaul host` makes the queue"
        )),
    }
}

fn compare(share: Share) -> String {
    let percent = share.percent;
    format!(
        "{percent}% of the clients pass untouched, and {percent}% are measured beside them; load the rules of `longhaul host` again"
    )
}

fn target(settings: &Settings, derived: &Derived) -> String {
    let choice = &derived.target;
    let level = match settings.rewrite.level {
        Level::Off => "",
        Level::Safe => ", level safe",
        Level::Full => ", level full",
    };
    let warning = choice.warning.as_ref().map(|warning| format!(". Warning: {warning}")).unwrap_or_default();
    match choice.kind {
        TargetKind::Nothing => format!("none: {}{warning}", choice.reason),
        kind => format!("to {} {}{level}: {}{warning}", kind.as_str(), choice.authorities.join(", "), choice.reason),
    }
}

fn cache(settings: &Settings) -> String {
    match &settings.cache {
        Cache::Off => "off".to_owned(),
        Cache::Disk { dir, size, groups, is_assumed: false, .. } => {
            let groups = match groups.len() {
                0 => String::new(),
                1 => ", 1 group of hosts".to_owned(),
                count => format!(", {count} groups of hosts"),
            };
            format!("{size} in {}{groups}", dir.display())
        }
        Cache::Disk { dir, size, .. } => {
            format!("{size}, or a tenth of the disk if that is less, in {}", dir.display())
        }
        Cache::Parents(_) => joined(&parent(settings)),
    }
}

fn compression(compressors: &Compressors) -> String {
    let level = |in_use: &Option<LevelInUse>| match in_use {
        None => "off".to_owned(),
        Some(LevelInUse { level, formula: Some(_) }) => format!("level {level} (for this rate)"),
        Some(LevelInUse { level, formula: None }) => format!("level {level}"),
    };
    format!("brotli {}, gzip {}", level(&compressors.brotli), level(&compressors.gzip))
}

/// The means for pages: which are on, which are off, and the reason.
fn page(settings: &Settings, model: &LinkModel) -> String {
    let page = settings.page;
    let prefetch = match (page.prefetch, &settings.cache) {
        (false, _) => "prefetch off",
        (true, Cache::Disk { .. }) => "prefetch on",
        (true, _) => "prefetch off (no cache on disk)",
    };
    if settings.role.is_alone() {
        return prefetch.to_owned();
    }
    let prefetch = if settings.role.changes_pages() { format!("{prefetch}, ") } else { String::new() };
    let switch = |on: bool| if on { "on" } else { "off" };
    let pays = if model.saving_rounds_pays() { "rounds cost more than bytes" } else { "bytes cost more than rounds" };
    let deltas = format!("deltas {} ({})", switch(settings.sends_deltas()), settings.link.delta_saving());
    let bundling = format!("bundling {} ({pays})", switch(page.bundle));
    format!("{prefetch}{bundling}, {deltas}, header compression {}", switch(settings.role.packs_headers()))
}

/// The ends of the certificates that this box presents.
fn certificates(settings: &Settings) -> Option<String> {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|now| i64::try_from(now.as_secs()).ok())?;
    let own = settings.role.identity().map(|own| &own.cert);
    let files = own.into_iter().chain(settings.terminate.iter().map(|entry| &entry.cert));
    let ends = files.filter_map(|file| {
        let days = Validity::of_pem(&fs::read_to_string(file).ok()?)?.days_left(now_s);
        let name = file.file_name()?.to_string_lossy().into_owned();
        Some(if days < 0 { format!("{name} has expired") } else { format!("{name} ends in {days} days") })
    });
    let ends: Vec<String> = ends.collect();
    (!ends.is_empty()).then(|| ends.join(", "))
}

/// Makes one line of several.
fn joined(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use longhaul_config::load_text;
    use longhaul_derive::{CongestionControls, HostFacts, derive};

    use super::*;

    #[test]
    fn a_sender_that_lost_packets_slow_down_stands_beside_the_link() {
        let text = "link: { rtt: 600ms, down: 20mbit, up: 5mbit }\nproxy: { addresses: [192.0.2.1] }\n\
                    upstream: { resolvers: [192.0.2.53] }\n";
        let loaded = load_text("longhaul.yaml".as_ref(), text.to_owned()).unwrap();
        let labels = |names: &[&str]| {
            let list: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let congestion_controls =
                CongestionControls::Known { allowed: list.clone(), available: list, default: "cubic".to_owned() };
            let facts = HostFacts { congestion_controls, ..HostFacts::unknown() };
            let rows = summary(&loaded.settings, &derive(&loaded.settings, &facts));
            rows.into_iter().map(|(label, _)| label).take(2).collect::<Vec<_>>()
        };
        assert_eq!(labels(&["cubic", "reno"]), ["link", "sends"]);
        assert_eq!(labels(&["cubic", "reno", "bbr"]), ["link", "opens"]);
    }
}
