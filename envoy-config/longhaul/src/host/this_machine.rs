//! Reads the state of this machine.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use longhaul_render::host::{ClientInterface, Machine};

/// Reads the state of this machine, with clients behind the interfaces `clients`, in the form of [`names`]. The link's
/// device is left out.
pub(crate) fn this_machine(clients: &str, siblings: &[IpAddr]) -> Machine {
    let read = |name: &&'static str| fs::read_to_string(sysctl_path(name)).ok().map(|value| (*name, normal(&value)));
    Machine {
        clients: names(clients).map(client_interface).collect(),
        sysctls: Machine::SYSCTLS.iter().filter_map(read).collect(),
        rules: output(&["-4", "rule", "show"]),
        ipv6_rules: output(&["-6", "rule", "show"]),
        to_siblings: to_siblings(siblings),
        link: None,
    }
}

fn client_interface(name: &str) -> ClientInterface {
    ClientInterface {
        name: name.to_owned(),
        routes: output(&["-4", "route", "show", "dev", name]),
        ipv6_routes: output(&["-6", "route", "show", "dev", name]),
        ipv6: [name, "lo"].into_iter().all(ipv6_is_on),
    }
}

/// Returns the names in a list of interfaces. A colon separates them as well as a comma, because the name of a unit may
/// have no comma: `longhaul-host@lan0:lan0.20`.
pub(crate) fn names(clients: &str) -> impl Iterator<Item = &str> {
    clients.split([',', ':'])
}

/// Returns true if IPv6 is on at the interface. An interface that does not exist yet gets the setting of all.
fn ipv6_is_on(interface: &str) -> bool {
    let read = |of: &str| fs::read_to_string(format!("/proc/sys/net/ipv6/conf/{of}/disable_ipv6")).ok();
    read(interface).or_else(|| read("all")).is_some_and(|value| value.trim() == "0")
}

/// Returns the network interfaces of this machine, sorted. Returns None if `/proc/net/dev` cannot be read.
pub(crate) fn interfaces() -> Option<Vec<String>> {
    let table = fs::read_to_string("/proc/net/dev").ok()?;
    let mut names: Vec<String> =
        table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect();
    names.sort();
    Some(names)
}

/// Returns the output of `ip`. A failure returns the empty string, which means that there are no such routes or rules.
pub(super) fn output(arguments: &[&str]) -> String {
    let output = Command::new("ip").args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
    output
        .ok()
        .filter(|output| output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default()
}

/// Returns the interfaces whose network a sibling is on. Empty if one is on none, because its network may come later.
fn to_siblings(siblings: &[IpAddr]) -> Vec<String> {
    let device = |sibling: &IpAddr| device_of_neighbour(&output(&["-o", "route", "get", &sibling.to_string()]));
    let devices: Option<BTreeSet<String>> = siblings.iter().map(device).collect();
    devices.unwrap_or_default().into_iter().collect()
}

/// Returns the interface that leads to an address, from the output of `ip -o route get`. None if the address is behind a
/// router or on this machine.
fn device_of_neighbour(route: &str) -> Option<String> {
    let words: Vec<&str> = route.split_whitespace().collect();
    if words.first() == Some(&"local") || words.contains(&"via") {
        return None;
    }
    let (_, after) = words.split_at_checked(words.iter().position(|word| *word == "dev")? + 1)?;
    after.first().map(|device| (*device).to_owned())
}

/// Replaces tabs by spaces. The kernel separates values by tabs, but accepts spaces.
fn normal(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn sysctl_path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use super::device_of_neighbour;

    #[test]
    fn the_interface_of_an_address_is_known_without_a_router() {
        for (route, device) in [
            ("198.51.100.42 dev sibling0 src 198.51.100.41 uid 0 \\    cache ", Some("sibling0")),
            ("2001:db8:6::2 from :: dev gre7 proto kernel src 2001:db8:6::1 metric 256 pref medium", Some("gre7")),
            ("198.51.100.42 via 192.0.2.7 dev wan0 src 192.0.2.1 uid 0 ", None),
            ("local 198.51.100.41 dev lo src 198.51.100.41 uid 0 ", None),
            ("198.51.100.42 dev", None),
            ("", None),
        ] {
            assert_eq!(device_of_neighbour(route).as_deref(), device, "{route}");
        }
    }
}
