//! Checks of settings that are valid alone but not together. Every message names both places.

mod challenges;
mod instant;
mod pair;

use std::net::{IpAddr, SocketAddr};

use super::diagnostic::{Place, Problem};
use super::names::Host;
use super::settings::{
    Acme, Cache, Dns, DnsMode, Draft, ImagesWish, Intercept, Level, Listen, Proxy, Role, TargetWish, Termination,
    Upstream,
};
use super::sockets::{Family, overlap, reaches};
use super::yaml::{Node, NodeValue};
use crate::{OverrideValue, TransportKey};

/// Finds the places of settings for the messages.
pub(super) struct Places<'n> {
    pub(super) root: &'n Node,
}

impl Places<'_> {
    /// Returns the place of the value at `path`, or of the deepest group above it in the file. A number in `path` is an
    /// index of a list.
    pub(super) fn of(&self, path: &[&str]) -> Place {
        let mut node = self.root;
        let mut place = node.place.start..node.place.start;
        for step in path {
            match &node.value {
                NodeValue::List(items) => match step.parse::<usize>().ok().and_then(|at| items.get(at)) {
                    Some(item) => {
                        node = item;
                        place = item.place.clone();
                    }
                    None => break,
                },
                _ => match node.entry(step) {
                    Some(entry) => {
                        node = &entry.node;
                        place = if node.place.is_empty() || matches!(node.value, NodeValue::Map(_)) {
                            entry.key_place.clone()
                        } else {
                            node.place.clone()
                        };
                    }
                    None => break,
                },
            }
        }
        place
    }

    /// Returns the value at `path`. A number in `path` is an index of a list. None if the file does not have it.
    fn node(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self.root, |node, step| match &node.value {
            NodeValue::List(items) => items.get(step.parse::<usize>().ok()?),
            // A list of one may be written without brackets.
            NodeValue::Scalar(_) if *step == "0" => Some(node),
            _ => node.entry(step).map(|entry| &entry.node),
        })
    }

    /// Returns the place of the value itself at `path`, or that of the deepest group above it.
    pub(super) fn value(&self, path: &[&str]) -> Place {
        self.node(path).map_or_else(|| self.of(path), |node| node.place.clone())
    }

    /// Returns the value at `path` as it is written.
    pub(super) fn text(&self, path: &[&str]) -> Option<&str> {
        match &self.node(path)?.value {
            NodeValue::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the place of the item of the list at `path` that names `name`, in any spelling.
    pub(super) fn item(&self, path: &[&str], name: &str) -> Place {
        let items = self.node(path).and_then(|node| match &node.value {
            NodeValue::List(items) => Some(items),
            _ => None,
        });
        let is_it =
            |text: &str| text.trim_start_matches(['=', '*', '.']).trim_end_matches('.').eq_ignore_ascii_case(name);
        let found =
            items.into_iter().flatten().find(|item| matches!(&item.value, NodeValue::Scalar(text) if is_it(text)));
        found.map_or_else(|| self.of(path), |item| item.place.clone())
    }

    pub(super) fn written(&self, section: &str, key: &str) -> bool {
        self.root.entry(section).is_some_and(|entry| entry.node.entry(key).is_some())
    }

    /// Returns the full name of the key, marked as the default if the file does not set it.
    fn name(&self, section: &str, key: &str) -> String {
        if self.written(section, key) {
            format!("`{section}.{key}`")
        } else {
            format!("`{section}.{key}` (the default)")
        }
    }
}

/// Checks all groups of the draft. Skips a group that has a problem of its own.
pub(super) fn check(root: &Node, draft: &Draft, problems: &mut Vec<Problem>) {
    let places = Places { root };
    if let Some(listen) = &draft.listen {
        let acme = draft.acme.as_ref().and_then(Option::as_ref);
        shared_sockets(&places, listen, acme, problems);
        // The other roles have no names, and `tls` is refused there as a whole.
        if let (Some(acme), Some(proxy), Some(Role::Edge)) = (acme, &draft.proxy, &draft.role) {
            challenges::check(&places, listen, proxy, acme, problems);
        }
        if let Some(upstream) = &draft.upstream {
            resolver_is_ourselves(&places, listen, draft.proxy.as_ref(), upstream, problems);
            mapped_to_ourselves(&places, listen, upstream, problems);
        }
        if let Some(Cache::Parents(parents)) = &draft.cache {
            parent_is_ourselves(&places, listen, draft.proxy.as_ref(), parents, problems);
        }
        compare_beside_the_way(&places, listen, draft, problems);
        if let Some(dns) = &draft.dns {
            steering_without_dns(&places, listen, !dns.domains.is_empty(), dns.www, problems);
        }
        if draft.role.as_ref().is_none_or(Role::meets_clients) {
            ipv6_bypasses(&places, listen, problems);
        }
        if let (Some(proxy), Some(terminate)) = (&draft.proxy, &draft.terminate) {
            let awaited = acme.into_iter().flat_map(|acme| acme.awaited.values());
            let entries: Vec<&Termination> = terminate.iter().chain(awaited).collect();
            secure_names(&places, listen, proxy, &entries, problems);
        }
    }
    images_without_cache(&places, draft, problems);
    instant::check(&places, draft, problems);
    if let (Some(link), Some(links), Some(clients)) = (&draft.link, &draft.links, &draft.clients) {
        pair::weights_of_nothing(&places, link, links, clients, problems);
    }
    if let Some(role) = &draft.role {
        pair::check(&places, role, draft.link.as_ref(), draft.upstream.as_ref(), draft.proxy.as_ref(), problems);
        if let Some(links) = &draft.links {
            pair::quic_over_several_links(&places, role, links, problems);
        }
    }
    if let (Some(rewrite), Some(proxy)) = (&draft.rewrite, &draft.proxy) {
        if rewrite.level != Level::Off && rewrite.target == TargetWish::Https && proxy.secure_names.is_empty() {
            problems.push(
                Problem::error("`rewrite.target: https` without an https name", places.of(&["rewrite", "target"]), "moves URLs to https names")
                    .and(places.of(&["proxy", "secure_names"]), "`proxy.secure_names` gives none")
                    .help("add a name under `proxy.secure_names` and its certificate under `tls.terminate`, or write `target: auto`"),
            );
        }
        too_many_shards(&places, draft, proxy, problems);
    }
    if let (Some(proxy), Some(listen)) = (&draft.proxy, &draft.listen) {
        private_proxy_address(&places, draft, proxy, listen, problems);
        siblings(&places, proxy, problems);
        proxy_address_without_listener(&places, proxy, listen, problems);
    }
    if draft.dns.as_ref().is_some_and(|dns| dns.mode == DnsMode::Replace) {
        problems.push(
            Problem::warning(
                "`dns.mode: replace` hides the origin's addresses",
                places.of(&["dns", "mode"]),
                "ssh and mail to steered names will fail",
            )
            .help("with `mode: prepend` they reach the origin's address, which follows the proxy's"),
        );
    }
}

/// Refuses a comparison at a box that is not on the clients' way. It sees no packet of a client that it leaves alone.
fn compare_beside_the_way(places: &Places<'_>, listen: &Listen, draft: &Draft, problems: &mut Vec<Problem>) {
    if draft.compare.flatten().is_some() && listen.intercept == Intercept::None {
        problems.push(
            Problem::error(
                "`compare` needs a box that is the clients' gateway",
                places.of(&["compare"]),
                "measures clients' packets that pass this box",
            )
            .and(places.of(&["listen", "intercept"]), "no packet passes: clients come by DNS alone")
            .help("remove `compare`, or make this box the clients' gateway and write `intercept: redirect`"),
        );
    }
}

/// Refuses two listeners on one socket. Compares TCP sockets only: HTTP/3 and DNS share their UDP ports with no other
/// listener of this box.
fn shared_sockets(places: &Places<'_>, listen: &Listen, acme: Option<&Acme>, problems: &mut Vec<Problem>) {
    let own = listen.required_sockets().map(|(key, socket)| (["listen", key], socket));
    let challenges = acme.and_then(|acme| acme.listen).map(|socket| (["tls", "acme"], socket));
    let sockets: Vec<([&str; 2], SocketAddr)> = own.chain(challenges).collect();
    for (index, (path, socket)) in sockets.iter().enumerate() {
        for (earlier, other) in sockets.iter().take(index) {
            let ([group, key], [earlier_group, earlier_key]) = (path, earlier);
            if path != earlier && overlap(*socket, *other) {
                problems.push(
                    Problem::error(
                        format!(
                            "{} and {} want the same socket",
                            places.name(earlier_group, earlier_key),
                            places.name(group, key)
                        ),
                        places.of(path),
                        format!("{key} on {socket}"),
                    )
                    .and(places.of(earlier), format!("{earlier_key} on {other}"))
                    .help("set one of them to another port"),
                );
            }
        }
    }
}

fn resolver_is_ourselves(
    places: &Places<'_>,
    listen: &Listen,
    proxy: Option<&Proxy>,
    upstream: &Upstream,
    problems: &mut Vec<Problem>,
) {
    let Some(dns) = &listen.dns else { return };
    let own = proxy.map(|proxy| proxy.addresses.as_slice()).unwrap_or_default();
    for (index, resolver) in upstream.resolvers.iter().enumerate() {
        if dns.iter().any(|bound| reaches(bound, *resolver, own)) {
            problems.push(
                Problem::error(
                    "`upstream.resolvers` names this box's own DNS",
                    places.of(&["upstream", "resolvers", &index.to_string()]),
                    format!("{resolver} would respond with the proxy's own address, a loop"),
                )
                .and(places.of(&["listen", "dns"]), format!("this box serves DNS on {dns}"))
                .help("name a resolver on the wired side, such as 9.9.9.9"),
            );
        }
    }
}

fn mapped_to_ourselves(places: &Places<'_>, listen: &Listen, upstream: &Upstream, problems: &mut Vec<Problem>) {
    for (name, target) in &upstream.map {
        let hit = listen.http_sockets().find(|(_, socket)| reaches(*socket, *target, &[]));
        if let Some((key, socket)) = hit {
            problems.push(
                Problem::error(
                    format!("`upstream.map` sends {name} to this box itself"),
                    map_place(places, name.as_str()),
                    format!("{target}"),
                )
                .and(places.of(&["listen", key]), format!("{key} listens on {socket}"))
                .help("map it to the origin's own address"),
            );
        }
    }
}

fn parent_is_ourselves(
    places: &Places<'_>,
    listen: &Listen,
    proxy: Option<&Proxy>,
    parents: &[SocketAddr],
    problems: &mut Vec<Problem>,
) {
    let own = proxy.map(|proxy| proxy.addresses.as_slice()).unwrap_or_default();
    for (index, parent) in parents.iter().enumerate() {
        let Some((key, socket)) = listen.http_sockets().find(|(_, socket)| reaches(*socket, *parent, own)) else {
            continue;
        };
        problems.push(
            Problem::error(
                "`cache.parent` names this box itself",
                places.of(&["cache", "parent", &index.to_string()]),
                format!("{parent} is a listener of this box"),
            )
            .and(places.of(&["listen", key]), format!("{key} listens on {socket}"))
            .help("name other boxes; a box that is a cache for others has `parent: null`"),
        );
    }
}

/// Without a cache on disk, each request for an image would recode it again.
fn images_without_cache(places: &Places<'_>, draft: &Draft, problems: &mut Vec<Problem>) {
    let wanted = draft.images.as_ref().is_some_and(|images| images.wish == ImagesWish::On);
    let no_disk = draft.cache.as_ref().is_some_and(|cache| !matches!(cache, Cache::Disk { .. }));
    if wanted && no_disk && draft.role.as_ref().is_none_or(Role::changes_pages) {
        problems.push(
            Problem::error(
                "`page.images` needs a cache on disk",
                places.of(&["page", "images"]),
                "without a cache, each request would recode its image",
            )
            .and(places.of(&["cache"]), "is off, or belongs to another proxy")
            .help("set `cache.dir`, or write `images: off`"),
        );
    }
}

/// Returns the place of `name` in `upstream.map`. The key in the file may be spelt differently from the parsed name.
fn map_place(places: &Places<'_>, name: &str) -> Place {
    let Some(map) = places.root.entry("upstream").and_then(|entry| entry.node.entry("map")) else { return 0..0 };
    match &map.node.value {
        NodeValue::Map(entries) => entries
            .iter()
            .find(|entry| super::names::HostName::parse(&entry.key).is_ok_and(|host| host.as_str() == name))
            .map_or(map.key_place.clone(), |entry| entry.node.place.clone()),
        _ => map.key_place.clone(),
    }
}

/// Warns if clients' packets are intercepted over IPv4 alone. Browsers prefer IPv6 where they have it, and the operator
/// would see no error.
fn ipv6_bypasses(places: &Places<'_>, listen: &Listen, problems: &mut Vec<Problem>) {
    if !listen.ipv6_bypasses() {
        return;
    }
    let http = &listen.http;
    problems.push(
        Problem::warning(
            "IPv6 traffic of clients bypasses this box",
            places.of(&["listen", "http"]),
            "no IPv6 address, so packet rules intercept IPv4 alone; browsers prefer IPv6",
        )
        .help(format!("write `http: [{http}, \"[::]:{}\"]`, or remove the key: the default serves both", http.port())),
    );
}

fn steering_without_dns(places: &Places<'_>, listen: &Listen, lists: bool, www: bool, problems: &mut Vec<Problem>) {
    if listen.dns.is_some() || !(lists || www) {
        return;
    }
    let key = if lists { "domains" } else { "www" };
    problems.push(
        Problem::error(
            format!("`dns.{key}` steers names, but `listen.dns` is off"),
            places.of(&["dns", key]),
            "no server would respond for these",
        )
        .and(places.of(&["listen", "dns"]), "off")
        .help("set `listen.dns` to an address, or remove the names"),
    );
}

fn secure_names(
    places: &Places<'_>,
    listen: &Listen,
    proxy: &Proxy,
    terminate: &[&Termination],
    problems: &mut Vec<Problem>,
) {
    if listen.tls.is_none() {
        let user = match (proxy.secure_names.is_empty(), terminate.is_empty()) {
            (false, _) => Some(["proxy", "secure_names"]),
            (true, false) => Some(["tls", "terminate"]),
            (true, true) => None,
        };
        if let Some(path) = user {
            problems.push(
                Problem::error(
                    format!("`{}.{}` needs TLS, but `listen.tls` is off", path[0], path[1]),
                    places.of(&path),
                    "served on the TLS port",
                )
                .and(places.of(&["listen", "tls"]), "off")
                .help("set `listen.tls` to an address such as 0.0.0.0:443"),
            );
            return;
        }
    }
    for (index, name) in proxy.secure_names.iter().enumerate() {
        if !terminate.iter().any(|entry| entry.names.contains(name)) {
            problems.push(
                Problem::error(
                    format!("no certificate for `{name}`"),
                    places.of(&["proxy", "secure_names", &index.to_string()]),
                    "the proxy's own https name",
                )
                .and(places.of(&["tls", "terminate"]), "no entry here names it")
                .help(format!(
                    "add `{{ names: [{}], cert: FILE, key: FILE }}` under `tls.terminate`",
                    written_name(name)
                )),
            );
        }
    }
}

fn written_name(name: &Host) -> String {
    match name {
        Host::Address(IpAddr::V6(_)) => format!("\"{name}\""),
        _ => name.to_string(),
    }
}

fn too_many_shards(places: &Places<'_>, draft: &Draft, proxy: &Proxy, problems: &mut Vec<Problem>) {
    let Some(written) = draft.transport.as_ref().and_then(|overrides| overrides.get(&TransportKey::Shards)) else {
        return;
    };
    let OverrideValue::Count(shards) = written.value else { return };
    let most = proxy.addresses.len().max(proxy.secure_names.len());
    if usize::try_from(shards).is_ok_and(|shards| shards > most) {
        let key = if proxy.secure_names.len() >= proxy.addresses.len() { "secure_names" } else { "addresses" };
        problems.push(
            Problem::error(
                "`transport.shards` is more than the number of targets",
                places.of(&["transport", "shards"]),
                format!("{shards} wanted"),
            )
            .and(places.of(&["proxy", key]), format!("{most} given"))
            .help("add names or addresses, or lower the number"),
        );
    }
}

/// Warns about a proxy address of a family that no listener serves. A translator in front of this box may serve it.
fn proxy_address_without_listener(places: &Places<'_>, proxy: &Proxy, listen: &Listen, problems: &mut Vec<Problem>) {
    let unserved = |address: &IpAddr| !listen.http.serves(Family::of(*address));
    for (index, address) in proxy.addresses.iter().enumerate().filter(|(_, address)| unserved(address)) {
        let family = Family::of(*address).as_str();
        let wildcard = if address.is_ipv4() { "0.0.0.0" } else { "[::]" };
        problems.push(
            Problem::warning(
                format!("no listener for proxy address {address}"),
                places.of(&["proxy", "addresses", &index.to_string()]),
                format!("DNS responses and moved URLs send clients here over {family}"),
            )
            .and(places.of(&["listen", "http"]), format!("no {family} address"))
            .help(format!("add {wildcard}:{} to `listen.http`", listen.http.port())),
        );
    }
}

/// Refuses a sibling that is this box, and one of a family in which both boxes share no address.
fn siblings(places: &Places<'_>, proxy: &Proxy, problems: &mut Vec<Problem>) {
    for (index, sibling) in proxy.siblings.iter().enumerate() {
        let place = || places.of(&["proxy", "siblings", &index.to_string()]);
        if let Some(own) = proxy.addresses.iter().position(|own| own == sibling) {
            problems.push(
                Problem::error(format!("sibling {sibling} is this box itself"), place(), "packets would come back")
                    .and(places.of(&["proxy", "addresses", &own.to_string()]), "all siblings hold this address")
                    .help("write an address that the sibling alone has"),
            );
        } else if !proxy.addresses.iter().any(|own| Family::of(*own) == Family::of(*sibling)) {
            let family = Family::of(*sibling).as_str();
            problems.push(
                Problem::error(
                    format!("sibling {sibling} continues no connection"),
                    place(),
                    format!("gets connections to {family} addresses of the proxy"),
                )
                .and(places.of(&["proxy", "addresses"]), format!("no {family} address"))
                .help("write an address of the sibling of the other family, or remove it"),
            );
        }
    }
}

/// Warns about a proxy address of the clients' own machine, and about one that browsers call local, where names are steered
/// or URLs move: this box does neither then. This is no error, because a laboratory or a closed network may intend it.
fn private_proxy_address(
    places: &Places<'_>,
    draft: &Draft,
    proxy: &Proxy,
    listen: &Listen,
    problems: &mut Vec<Problem>,
) {
    // A proxy that listens on loopback is a trial on one machine.
    if listen.http.is_loopback() {
        return;
    }
    let place = |address: IpAddr| {
        let index = proxy.addresses.iter().position(|own| *own == address);
        places.of(&["proxy", "addresses", &index.map_or_else(String::new, |index| index.to_string())])
    };
    for address in proxy.addresses.iter().filter(|address| address.is_loopback()) {
        problems.push(
            Problem::warning(
                format!("proxy address {address} is each client's own machine"),
                place(*address),
                "DNS responses and moved URLs would send clients to themselves",
            )
            .help("write the address of this box on the clients' network, such as `198.51.100.12`"),
        );
    }
    let at_edge = matches!(draft.role, Some(Role::Edge));
    let lists = draft.dns.as_ref().is_some_and(Dns::has_lists);
    let steers = lists && (at_edge || listen.intercept == Intercept::None);
    let moves = at_edge && draft.rewrite.as_ref().is_some_and(|rewrite| rewrite.level != Level::Off);
    let unsteered = proxy.local_steering();
    for address in Family::BOTH.into_iter().flat_map(|family| proxy.local_addresses(family)) {
        let not_steered = steers && unsteered.iter().any(|range| range.contains(address));
        let effect = match (not_steered, moves) {
            (false, false) => continue,
            (true, false) => "no name is steered to it",
            (false, true) => "URLs move to it only in pages that come from it",
            (true, true) => "no name is steered to it, and URLs move to it only in pages that come from it",
        };
        problems.push(
            Problem::warning(
                format!("browsers keep public pages from proxy address {address}"),
                place(*address),
                format!("{effect}: objects there would not load"),
            )
            .help(
                "write a public address of this box; without one, add 198.18.0.1 to its interface lo, and write that",
            ),
        );
    }
}
