//! The steps for one configuration on one machine.

use std::net::IpAddr;

use ipnet::IpNet;
use longhaul_config::{Bytes, Family, Intercept, Settings};
use longhaul_derive::{CongestionControl, Derived, MultipathUse};

use super::machine::{
    ACCEPT_LOCAL, ACCOUNTING, ALLOWED, BLACKHOLE, ClientInterface, FORWARD, Machine, RMEM, SLOW_START, WITHOUT_SUBFLOW,
    WMEM,
};
use super::nft;
use super::queue;
use super::routes;
use super::siblings;
use super::step::{Action, Plan, Step};

/// The routing table for packets that TPROXY has given to a listener.
const LOCAL_TABLE: &str = "4170";

impl Plan {
    /// Returns the steps that `settings` need on `machine`, without those that are in place already.
    pub fn of(settings: &Settings, derived: &Derived, machine: &Machine) -> Self {
        let steps = [
            sysctls(settings, derived, machine),
            client_routes(settings, derived, machine),
            own_ranges(settings),
            interception(settings, machine),
        ];
        let (queue, left_out) = queue::shape(derived, machine);
        // Last: whatever it costs, the rules before it are in place.
        Self { steps: steps.concat().into_iter().chain(queue).collect(), left_out }
    }
}

/// The time in which a connection without a subflow gets another one, in seconds. A modem that dials again has an address
/// within some 15 s. Where the ground no longer knows the connection, clients wait for this time.
const JOINED_S: u32 = 20;

fn sysctls(settings: &Settings, derived: &Derived, machine: &Machine) -> Vec<Step> {
    let mut wanted = vec![
        (SLOW_START, "0".to_owned(), "a kept connection starts its next page at the speed it had".to_owned()),
        (WMEM, with_maximum(machine.sysctl(WMEM), derived.send_buffer_max.value), derived.send_buffer_max.comment()),
        (RMEM, receive_buffers(settings, derived, machine.sysctl(RMEM)), derived.receive_buffer_max.comment()),
    ];
    if settings.listen.intercept != Intercept::None {
        wanted.push((FORWARD, "1".to_owned(), "this host is on the clients' way".to_owned()));
    }
    if matches!(derived.multipath, MultipathUse::Opens(_)) {
        let why = "a link that is down is no firewall: the next connection uses Multipath TCP again";
        wanted.push((BLACKHOLE, "0".to_owned(), why.to_owned()));
        let why = "a ground that restarted has reset all subflows, and no other one comes: the connection ends";
        wanted.push((WITHOUT_SUBFLOW, JOINED_S.to_string(), why.to_owned()));
    }
    if settings.compare.is_some() {
        wanted.push((ACCOUNTING, "1".to_owned(), "`compare` measures the first packets of connections".to_owned()));
    }
    if settings.proxy.siblings.iter().any(IpAddr::is_ipv4) {
        wanted.push((ACCEPT_LOCAL, "1".to_owned(), "siblings respond from the proxy's address".to_owned()));
    }
    if let (CongestionControl::Named(name), Some(allowed)) =
        (&derived.congestion_control.value, machine.sysctl(ALLOWED))
        && !allowed.split(' ').any(|word| word == name)
    {
        wanted.push((ALLOWED, format!("{allowed} {name}"), format!("processes without CAP_NET_ADMIN may use {name}")));
    }
    let step = |(name, value, why): (&str, String, String)| {
        let before = machine.sysctl(name)?.to_owned();
        (before != value).then(|| Step { why, action: Action::Sysctl { name: name.to_owned(), value, before } })
    };
    wanted.into_iter().filter_map(step).collect()
}

/// The payload of a TCP segment on Ethernet, in bytes.
const SEGMENT_BYTES: u64 = 1460;

/// Returns `tcp_rmem`. At a remote its default is at least twice the initial window in bytes, up to the maximum,
/// because the pipe receives whole pages at once.
///
/// The kernel offers half of the default as the first window of a connection, whatever `initrwnd` says. A window that
/// grows only as bytes arrive costs a round trip.
fn receive_buffers(settings: &Settings, derived: &Derived, present: Option<&str>) -> String {
    let with_maximum = with_maximum(present, derived.receive_buffer_max.value);
    let words: Vec<u64> = with_maximum.split(' ').filter_map(|word| word.parse().ok()).collect();
    match words.as_slice() {
        [least, default, most] if settings.role.stands_beside_clients() => {
            let first = 2 * SEGMENT_BYTES * u64::from(derived.initial_window.value);
            format!("{least} {} {most}", first.clamp(*default, (*most).max(*default)))
        }
        _ => with_maximum,
    }
}

/// Returns `min default max` with at least this maximum. A larger maximum of the host stays.
fn with_maximum(present: Option<&str>, maximum: Bytes) -> String {
    let mut words: Vec<u64> = present.unwrap_or_default().split(' ').filter_map(|word| word.parse().ok()).collect();
    words.resize(3, 4096);
    if let Some(last) = words.last_mut() {
        *last = (*last).max(maximum.0);
    }
    words.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn client_routes(settings: &Settings, derived: &Derived, machine: &Machine) -> Vec<Step> {
    let why = format!("initial window: {}", derived.initial_window.comment());
    let of = |family, interface: &str, routes: &str| -> Vec<Step> {
        let command = |arguments: Vec<String>| {
            ip(family).iter().chain(&["route", "change"]).map(ToString::to_string).chain(arguments).collect()
        };
        let changes = routes::changes(routes, interface, derived).into_iter();
        let changes = changes.filter(|change| change.wanted != change.before);
        let step = |change: routes::RouteChange| Step {
            why: why.clone(),
            action: Action::Command { command: command(change.wanted), undo: command(change.before) },
        };
        changes.map(step).collect()
    };
    let of_interface = |interface: &ClientInterface| {
        let serves_ipv6 = interface.ipv6 && settings.listen.serves(Family::Ipv6);
        let ipv6 = if serves_ipv6 { interface.ipv6_routes.as_str() } else { "" };
        [of(Family::Ipv4, &interface.name, &interface.routes), of(Family::Ipv6, &interface.name, ipv6)].concat()
    };
    machine.clients.iter().flat_map(of_interface).collect()
}

/// Returns the command `ip` for one family. IPv4 is its default.
fn ip(family: Family) -> &'static [&'static str] {
    match family {
        Family::Ipv4 => &["ip"],
        Family::Ipv6 => &["ip", "-6"],
    }
}

/// Returns true if clients' IPv6 traffic can reach the listeners.
fn serves_ipv6(settings: &Settings, machine: &Machine) -> bool {
    machine.has_ipv6() && settings.listen.serves(Family::Ipv6)
}

/// Returns the steps that keep packets of TPROXY on this host.
fn kept_here(family: Family, rules: &str) -> Vec<Step> {
    let mark = format!("{:#x}", nft::MARK);
    let words = |text: &str| ip(family).iter().copied().chain(text.split(' ')).map(str::to_owned).collect::<Vec<_>>();
    let step = |why: &str, command: &str, undo: &str| Step {
        why: why.to_owned(),
        action: Action::Command { command: words(command), undo: words(undo) },
    };
    let rule = format!("fwmark {mark} lookup {LOCAL_TABLE}");
    let route = format!("local default dev lo table {LOCAL_TABLE}");
    let marked = (!rules.contains(&rule)).then(|| {
        let why = "packets that TPROXY gave to a listener stay on this host";
        step(why, &format!("rule add {rule}"), &format!("rule del {rule}"))
    });
    let local =
        step("whatever address they were sent to", &format!("route replace {route}"), &format!("route del {route}"));
    marked.into_iter().chain([local]).collect()
}

/// Returns the steps that make every address of a range one of this host.
fn own_ranges(settings: &Settings) -> Vec<Step> {
    let step = |range: &IpNet| {
        let family = if range.addr().is_ipv4() { Family::Ipv4 } else { Family::Ipv6 };
        let words =
            |text: String| ip(family).iter().copied().chain(text.split(' ')).map(str::to_owned).collect::<Vec<_>>();
        let route = format!("local {range} dev lo");
        Step {
            why: "every address of this range of `proxy.addresses` leads to the listeners".to_owned(),
            action: Action::Command {
                command: words(format!("route replace {route}")),
                undo: words(format!("route del {route}")),
            },
        }
    };
    settings.proxy.ranges.iter().map(step).collect()
}

fn interception(settings: &Settings, machine: &Machine) -> Vec<Step> {
    let mut steps = Vec::new();
    if settings.listen.intercept == Intercept::Tproxy {
        steps.extend(kept_here(Family::Ipv4, &machine.rules));
        if serves_ipv6(settings, machine) {
            steps.extend(kept_here(Family::Ipv6, &machine.ipv6_rules));
        }
    }
    let why = match settings.listen.intercept {
        Intercept::None => "nobody but the clients reaches the listeners",
        Intercept::Redirect | Intercept::Tproxy => {
            "clients' web and DNS traffic comes to the listeners, and nobody else's"
        }
    };
    let rules = nft::rules(settings, machine);
    steps.push(Step { why: why.to_owned(), action: Action::Rules { table: nft::TABLE.to_owned(), rules } });
    steps.extend(siblings::tables(settings, machine).into_iter().map(|(table, rules)| Step {
        why: "connections of clients that moved here go on where they began".to_owned(),
        action: Action::Rules { table, rules },
    }));
    steps
}
