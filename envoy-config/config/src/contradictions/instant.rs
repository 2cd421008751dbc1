//! Checks of `dns.instant_range`: every address in it belongs to a name, so no machine may have one.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};

use super::Places;
use crate::diagnostic::{Place, Problem};
use crate::names::{Host, HostPort};
use crate::settings::{Draft, InstantWish, Role};
use crate::sockets::Sockets;

/// Refuses a range with addresses that the file has for something else. A file of an older version chose no range.
pub(super) fn check(places: &Places<'_>, draft: &Draft, problems: &mut Vec<Problem>) {
    let Some(dns) = &draft.dns else { return };
    let chosen = places.written("dns", "instant_range") || dns.instant == InstantWish::On;
    if !chosen || !matches!(draft.role, Some(Role::Remote(_))) {
        return;
    }
    let range = dns.instant_range;
    let Some((what, place)) =
        in_use(places, draft).find_map(|(net, what, place)| overlaps(range, net).then_some((what, place)))
    else {
        return;
    };
    problems.push(
        Problem::error(
            "`dns.instant_range` overlaps addresses that are in use",
            places.of(&["dns", "instant_range"]),
            format!("names get addresses in {range}"),
        )
        .and(place, what)
        .help("write another range, such as `instant_range: 198.19.0.0/16` or a part of 240.0.0.0/4"),
    );
}

fn overlaps(range: Ipv4Net, net: IpNet) -> bool {
    matches!(net, IpNet::V4(net) if net.contains(&range) || range.contains(&net))
}

/// Returns the addresses of the file that a client or this box connects to or comes from, with their places.
fn in_use<'p>(places: &'p Places<'_>, draft: &'p Draft) -> impl Iterator<Item = (IpNet, &'static str, Place)> + 'p {
    let clients = draft.clients.iter().flatten().enumerate().flat_map(move |(at, group)| {
        let place = places.of(&["clients", &at.to_string(), "ranges"]);
        group.ranges.iter().map(move |range| (*range, "clients have these addresses", place.clone()))
    });
    let at = |path: &[&str], addresses: Vec<IpAddr>, what| {
        let place = places.of(path);
        addresses.into_iter().map(move |address| (IpNet::from(address), what, place.clone())).collect::<Vec<_>>()
    };
    let ranges = |path: &[&str], ranges: Vec<IpNet>, what| {
        let place = places.of(path);
        ranges.into_iter().map(move |range| (range, what, place.clone())).collect::<Vec<_>>()
    };
    let proxy = draft.proxy.as_ref();
    let own = proxy.map(|proxy| proxy.addresses.clone()).unwrap_or_default();
    let own_ranges = proxy.map(|proxy| proxy.ranges.clone()).unwrap_or_default();
    let bound: Vec<IpAddr> = draft
        .listen
        .iter()
        .flat_map(|listen| listen.web().chain(&listen.dns))
        .flat_map(Sockets::iter)
        .map(|socket| socket.ip())
        .collect();
    let resolvers =
        draft.upstream.as_ref().map(|upstream| upstream.resolvers.iter().map(std::net::SocketAddr::ip).collect());
    let private = draft.upstream.as_ref().map(|upstream| upstream.allow_private.clone());
    let bypassing = draft.dns.as_ref().map(|dns| dns.bypass.clone());
    clients
        .chain(at(&["proxy", "addresses"], own, "the proxy's own address"))
        .chain(ranges(&["proxy", "addresses"], own_ranges, "the proxy's own addresses"))
        .chain(at(&["listen"], bound.into_iter().filter(|ip| !ip.is_unspecified()).collect(), "this box listens there"))
        .chain(at(&["upstream", "resolvers"], resolvers.unwrap_or_default(), "a resolver has this address"))
        .chain(ranges(&["upstream", "allow_private"], private.unwrap_or_default(), "clients reach servers there"))
        .chain(ranges(&["dns", "bypass"], bypassing.unwrap_or_default(), "clients have these addresses"))
        .chain(at(&["split", "peer"], grounds(draft), "the ground has this address"))
}

fn grounds(draft: &Draft) -> Vec<IpAddr> {
    let Some(Role::Remote(remote)) = &draft.role else { return Vec::new() };
    let address = |at: &HostPort| match &at.host {
        Host::Address(address) => Some(*address),
        Host::Name(_) => None,
    };
    remote.grounds.iter().filter_map(address).collect()
}
