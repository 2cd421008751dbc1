//! Addresses, ranges and ports: those of no machine, those of everything, and those that leave https out.

use std::net::{IpAddr, SocketAddr};

use http_semantics::addresses::{self, Range};
use ipnet::IpNet;

use crate::contradictions::Places;
use crate::diagnostic::Problem;
use crate::settings::{Cache, Draft, Role};

/// A range that holds as many kinds of special addresses as this is a range of everything.
const EVERYTHING: usize = 2;

pub(super) fn check(places: &Places<'_>, draft: &Draft) -> Vec<Problem> {
    let mut found = of_no_machine(places, draft);
    found.extend(guard_off(places, draft));
    found.extend(of_everybody(places, draft));
    found.extend(ports(places, draft));
    found
}

/// Addresses to which no connection leads, in keys that name another machine.
fn of_no_machine(places: &Places<'_>, draft: &Draft) -> Vec<Problem> {
    let mut dialled: Vec<(&[&str], &[SocketAddr], &str)> = Vec::new();
    if let Some(upstream) = &draft.upstream {
        dialled.push((&["upstream", "resolvers"], &upstream.resolvers, "9.9.9.9"));
    }
    if let Some(Cache::Parents(parents)) = &draft.cache {
        dialled.push((&["cache", "parent"], parents, "192.0.2.7:3128"));
    }
    let each = dialled.into_iter().flat_map(|(path, sockets, example)| {
        sockets.iter().enumerate().map(move |(index, socket)| (path, index, *socket, example))
    });
    let nobody = each.filter_map(|(path, index, socket, example)| {
        let kind = kind_of_nobody(socket.ip())?;
        let index = index.to_string();
        let place = places.value(&[path, &[index.as_str()]].concat());
        let title = format!("`{}`: {} is {kind}", path.join("."), socket.ip());
        let problem = Problem::warning(title, place, "no single machine responds there");
        Some(problem.help(format!("write the address of one machine, such as `{example}`")))
    });
    nobody.collect()
}

/// Returns what an address is that belongs to no single machine.
fn kind_of_nobody(address: IpAddr) -> Option<&'static str> {
    match address {
        _ if address.is_multicast() => Some("a multicast address"),
        _ if address.is_unspecified() => Some("an address to listen on"),
        IpAddr::V4(v4) if v4.is_broadcast() => Some("the broadcast address"),
        _ => None,
    }
}

/// Ranges of `upstream.allow_private` that let clients reach every network of this box.
fn guard_off(places: &Places<'_>, draft: &Draft) -> Vec<Problem> {
    let Some(upstream) = &draft.upstream else { return Vec::new() };
    let found = upstream.allow_private.iter().enumerate().filter(|(_, range)| special_ranges(range) >= EVERYTHING);
    found
        .map(|(index, range)| {
            let place = places.value(&["upstream", "allow_private", &index.to_string()]);
            Problem::warning(
                format!("`upstream.allow_private` of {range} switches the guard off"),
                place,
                "clients reach every private network that this box reaches, with the services in it that trust it",
            )
            .help("list the ranges of the servers that clients need, such as `192.168.10.0/24`")
        })
        .collect()
}

/// Ranges that hold every origin or every client.
fn of_everybody(places: &Places<'_>, draft: &Draft) -> Vec<Problem> {
    let denied = draft.upstream.as_ref().map(|upstream| upstream.deny.as_slice()).unwrap_or_default();
    let bypassing = draft.dns.as_ref().map(|dns| dns.bypass.as_slice()).unwrap_or_default();
    let keys = [
        (
            ["upstream", "deny"],
            denied,
            "clients reach no origin of this family",
            "list the ranges that clients may not reach",
        ),
        (
            ["dns", "bypass"],
            bypassing,
            "no name is steered for any client of this family",
            "list the clients that get the origin's addresses",
        ),
    ];
    let mut found = Vec::new();
    for (path, ranges, label, help) in keys {
        for (index, range) in ranges.iter().enumerate().filter(|(_, range)| range.prefix_len() == 0) {
            let place = places.value(&[path[0], path[1], &index.to_string()]);
            let title = format!("`{}` of {range} is every address", path.join("."));
            found.push(Problem::warning(title, place, label).help(format!("{help}, such as `192.0.2.0/28`")));
        }
    }
    found
}

/// Returns the number of kinds of special addresses that lie in `range` as a whole.
fn special_ranges(range: &IpNet) -> usize {
    let whole = Range { network: range.network(), length: range.prefix_len() };
    addresses::refused()
        .filter(|special| special.length >= range.prefix_len() && whole.contains(special.network))
        .count()
}

/// Ports without those of http or https, at a box that connects to origins.
fn ports(places: &Places<'_>, draft: &Draft) -> Option<Problem> {
    let (upstream, role) = (draft.upstream.as_ref()?, draft.role.as_ref()?);
    let tls_passes = matches!(role, Role::Ground(_)) || draft.listen.as_ref()?.tls.is_some();
    let lacks = tls_passes && role.reaches_origins() && !upstream.ports.contains(&443);
    lacks.then(|| {
        let mut ports: Vec<String> = upstream.ports.iter().map(ToString::to_string).collect();
        ports.push("443".to_owned());
        Problem::warning(
            "`upstream.ports` without 443 refuses https",
            places.value(&["upstream", "ports"]),
            "clients reach no https site on its usual port",
        )
        .help(format!("write `[{}]`", ports.join(", ")))
    })
}
