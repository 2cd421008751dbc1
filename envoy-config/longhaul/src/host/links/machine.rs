//! Reads the addresses, gateways and counters of interfaces, and runs `ip`.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::setup::{Item, Place, Places, endpoint};

#[derive(Deserialize)]
struct Interface {
    ifname: String,
    #[serde(default)]
    addr_info: Vec<Address>,
}

#[derive(Deserialize)]
struct Address {
    local: Option<IpAddr>,
    scope: Option<String>,
    /// An address of IPv6 that changes every day, one that no connection should begin with, and one that may be somebody
    /// else's.
    #[serde(default)]
    temporary: bool,
    #[serde(default)]
    deprecated: bool,
    #[serde(default)]
    tentative: bool,
}

#[derive(Deserialize)]
struct Route {
    dev: Option<String>,
    gateway: Option<IpAddr>,
}

/// Returns the addresses and the gateways of each interface that has an address. Those of IPv6 are read only `with_ipv6`.
pub(super) fn places(with_ipv6: bool) -> BTreeMap<String, Places> {
    let of = |family: &str| {
        let addresses = output(&["-j", family, "address", "show", "up"]);
        let routes = output(&["-j", family, "route", "show", "default", "table", "main"]);
        parse(addresses.as_deref().unwrap_or("[]"), routes.as_deref().unwrap_or("[]"))
    };
    let mut places = BTreeMap::<String, Places>::new();
    for (device, place) in of("-4") {
        places.entry(device).or_default().ipv4 = Some(place);
    }
    for (device, place) in with_ipv6.then(|| of("-6")).into_iter().flatten() {
        places.entry(device).or_default().ipv6 = Some(place);
    }
    places
}

fn parse(addresses: &str, routes: &str) -> BTreeMap<String, Place> {
    let interfaces: Vec<Interface> = serde_json::from_str(addresses).unwrap_or_default();
    let routes: Vec<Route> = serde_json::from_str(routes).unwrap_or_default();
    let gateway = |device: &str| routes.iter().find(|route| route.dev.as_deref() == Some(device))?.gateway;
    let place = |interface: Interface| {
        let lasts = |one: &&Address| !one.temporary && !one.deprecated && !one.tentative;
        let global = |one: &&Address| one.scope.as_deref() == Some("global");
        let address = interface.addr_info.iter().filter(global).find(lasts)?.local?;
        let gateway = gateway(&interface.ifname);
        Some((interface.ifname, Place { address, gateway }))
    };
    interfaces.into_iter().filter_map(place).collect()
}

#[derive(Deserialize)]
struct Endpoint {
    address: IpAddr,
    id: u32,
    dev: Option<String>,
    #[serde(default)]
    backup: bool,
}

/// Returns the endpoints of Multipath TCP that an earlier watch has left.
pub(super) fn endpoints() -> Vec<Item> {
    endpoints_in(output(&["-j", "mptcp", "endpoint", "show"]).as_deref().unwrap_or("[]"))
}

fn endpoints_in(json: &str) -> Vec<Item> {
    let found: Vec<serde_json::Value> = serde_json::from_str(json).unwrap_or_default();
    let parsed = found.into_iter().filter_map(|one| serde_json::from_value::<Endpoint>(one).ok());
    parsed.filter_map(|one| endpoint(one.id, one.address, one.dev?, one.backup)).collect()
}

/// Returns the bytes that each interface has received and sent.
pub(super) fn bytes() -> BTreeMap<String, (u64, u64)> {
    // Not /sys, which may be that of another network namespace.
    counters(&fs::read_to_string("/proc/net/dev").unwrap_or_default())
}

fn counters(table: &str) -> BTreeMap<String, (u64, u64)> {
    let line = |line: &str| {
        let (name, counters) = line.split_once(':')?;
        let counters: Vec<u64> = counters.split_whitespace().map_while(|word| word.parse().ok()).collect();
        Some((name.trim().to_owned(), (*counters.first()?, *counters.get(8)?)))
    };
    table.lines().filter_map(line).collect()
}

/// Runs a command line, or several with semicolons between them.
///
/// # Errors
/// The message of the first one that failed.
pub(super) fn run(line: &str) -> Result<(), String> {
    line.split(';').try_for_each(|one| {
        let mut words = one.split_whitespace();
        let Some(program) = words.next() else { return Ok(()) };
        let done = Command::new(program).args(words).env("LC_ALL", "C").stdin(Stdio::null()).output();
        match done {
            Ok(done) if done.status.success() => Ok(()),
            Ok(done) => Err(format!("{}: {}", one.trim(), String::from_utf8_lossy(&done.stderr).trim())),
            Err(error) => Err(format!("cannot run {program}: {error}")),
        }
    })
}

fn output(arguments: &[&str]) -> Option<String> {
    let done = Command::new("ip").args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_an_earlier_watch_are_found() {
        let json = r#"[{"address":"192.0.2.2","id":180,"subflow":true,"dev":"lte0"},{"address":"2001:db8::1","id":1,"signal":true},
            {"address":"192.0.2.6","id":181,"subflow":true,"backup":true,"dev":"geo0"},{"address":"192.0.2.9","id":2,"dev":"x0"}]"#;
        let own = |id, address: [u8; 4], device: &str, backup| endpoint(id, address.into(), device.to_owned(), backup);
        let expected = [own(180, [192, 0, 2, 2], "lte0", false), own(181, [192, 0, 2, 6], "geo0", true)];
        assert_eq!(endpoints_in(json), expected.into_iter().flatten().collect::<Vec<_>>());
        assert_eq!(endpoints_in("nonsense"), []);
    }

    #[test]
    fn the_bytes_of_an_interface_are_those_of_the_kernels_table() {
        let table = "Inter-|   Receive                       |  Transmit\n face |bytes packets errs|bytes\n\
                     wan0: 1500 2 0 0 0 0 0 0 700 3 0 0 0 0 0 0\n    lo:9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n";
        assert_eq!(counters(table).get("wan0"), Some(&(1500, 700)));
        assert_eq!(counters(table).len(), 2);
    }

    #[test]
    fn the_address_and_the_gateway_of_an_interface_are_those_that_ip_prints() {
        let addresses = r#"[{"ifname":"lo","addr_info":[{"local":"127.0.0.1","scope":"host"}]},
            {"ifname":"wan0","addr_info":[{"local":"192.0.2.7","prefixlen":24,"scope":"global"}]},
            {"ifname":"wwan0","addr_info":[{"local":"198.51.100.9","scope":"global"}]},{"ifname":"down0"}]"#;
        let routes =
            r#"[{"dst":"default","gateway":"192.0.2.1","dev":"wan0","metric":100},{"dst":"default","dev":"wwan0"}]"#;
        let found = parse(addresses, routes);
        let place =
            |address: &str, gateway: &str| Place { address: address.parse().unwrap(), gateway: gateway.parse().ok() };
        assert_eq!(found.len(), 2);
        assert_eq!(found["wan0"], place("192.0.2.7", "192.0.2.1"));
        assert_eq!(found["wwan0"], place("198.51.100.9", ""));
        let addresses = r#"[{"ifname":"wan0","addr_info":[{"local":"2001:db8::5","scope":"global","temporary":true},
            {"local":"2001:db8::6","scope":"global","tentative":true},{"local":"2001:db8::7","scope":"global"},
            {"local":"fe80::7","scope":"link"}]}]"#;
        let found = parse(addresses, r#"[{"dst":"default","gateway":"fe80::1","dev":"wan0"}]"#);
        assert_eq!(found["wan0"], place("2001:db8::7", "fe80::1"));
        assert!(parse("nonsense", "[]").is_empty());
    }
}
