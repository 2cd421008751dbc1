//! Queries to the children: readiness, and the acceptance of files by Envoy.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use longhaul_config::WhenDown;
use longhaul_observe::Endpoint;
use longhaul_observe::measure::{Kernel, PairEnd};

/// The time that a program on this machine has to accept a connection.
const PATIENCE: Duration = Duration::from_secs(2);

/// The page of Envoy's admin interface with the clusters in use.
const CLUSTERS: &str = "/clusters?format=json";

/// Returns true if `http://socket/ready` returns 200, as CoreDNS's `ready` plugin does.
pub(super) fn is_ready(socket: SocketAddr) -> bool {
    Endpoint::Tcp(socket).page("/ready").is_ok()
}

/// Returns true if a program on this machine accepts connections at `socket`.
pub(super) fn accepts(socket: SocketAddr) -> bool {
    let address = match socket.ip() {
        IpAddr::V4(any) if any.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(any) if any.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    };
    TcpStream::connect_timeout(&SocketAddr::new(address, socket.port()), PATIENCE).is_ok()
}

/// Returns the restart epoch of the Envoy that responds at `admin`, if that Envoy serves. During a takeover both
/// processes use the same socket.
pub(super) fn live_epoch(admin: &Endpoint) -> Option<u32> {
    let text = admin.page("/server_info").ok()?;
    let info: serde_json::Value = serde_json::from_str(&text).ok()?;
    let epoch = info.pointer("/command_line_options/restart_epoch")?.as_u64()?;
    (info.get("state")? == "LIVE").then_some(u32::try_from(epoch).ok()?)
}

/// Returns Envoy's counters and gauges whose names match the regular expression `filter`, a line each: `NAME: VALUE`.
/// None if the admin interface does not respond.
pub(super) fn stats(admin: &Endpoint, filter: &str) -> Option<String> {
    admin.page(&format!("/stats?filter={}", percent_encoded(filter))).ok()
}

/// Returns true if a remote's Envoy has a pipe to the ground. With `when_down: direct`, returns true if it uses the
/// pipe. None if Envoy does not report it. `end` is this box.
pub(super) fn link_is_up(admin: &Endpoint, when_down: WhenDown, end: &PairEnd) -> Option<bool> {
    match when_down {
        WhenDown::Error => {
            let text = stats(admin, r"^cluster\.pipe\.upstream_cx_active$")?;
            let (_, value) = text.lines().find_map(|line| line.rsplit_once(": "))?;
            Some(value.trim().parse::<u64>().ok()? > 0 && is_connected(end))
        }
        // Envoy's gauge of healthy hosts is no source: after a change of the file, it is that of a cluster not yet in use.
        WhenDown::Direct => Some(grounds(&admin.page(CLUSTERS).ok()?)?.iter().any(|host| !has_failed(host))),
    }
}

/// Returns true if a connection to the ground is established, or the kernel does not tell.
fn is_connected(end: &PairEnd) -> bool {
    let connections = Kernel::open().and_then(|kernel| end.read(&kernel));
    connections.map_or(true, |connections| PairEnd::is_connected(&connections))
}

/// An address of a ground that passes its health checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passing {
    /// The number of the ground, in the order of `split.peer`.
    pub(super) ground: usize,
    pub(super) address: SocketAddr,
}

/// Returns the addresses of the grounds that pass their health checks. None if Envoy does not report them.
pub(super) fn passing_grounds(admin: &Endpoint) -> Option<Vec<Passing>> {
    passing(&admin.page(CLUSTERS).ok()?)
}

/// Returns true if the addresses of the grounds are known, and all of them failed their health checks.
pub(super) fn no_ground_responds(admin: &Endpoint) -> bool {
    admin.page(CLUSTERS).is_ok_and(|clusters| all_failed(&clusters))
}

fn passing(clusters: &str) -> Option<Vec<Passing>> {
    let hosts = grounds(clusters)?;
    Some(hosts.iter().filter(|host| !has_failed(host)).filter_map(place).collect())
}

/// Envoy's priority of a host is the place of the ground in `split.peer`. It omits one that is zero.
fn place(host: &serde_json::Value) -> Option<Passing> {
    let priority = host.get("priority").and_then(serde_json::Value::as_u64).unwrap_or(0);
    let socket = host.pointer("/address/socket_address")?;
    let ip: IpAddr = socket.get("address")?.as_str()?.parse().ok()?;
    let port = u16::try_from(socket.get("port_value")?.as_u64()?).ok()?;
    Some(Passing { ground: usize::try_from(priority).ok()?, address: SocketAddr::new(ip, port) })
}

fn all_failed(clusters: &str) -> bool {
    grounds(clusters)
        .is_some_and(|hosts| !hosts.is_empty() && hosts.iter().all(|host| has_failed(host) && !is_pending(host)))
}

/// Returns Envoy's list of the grounds. None until their addresses are known.
fn grounds(clusters: &str) -> Option<Vec<serde_json::Value>> {
    let clusters: serde_json::Value = serde_json::from_str(clusters).ok()?;
    let pipe =
        clusters.get("cluster_statuses")?.as_array()?.iter().find(|one| one.get("name") == Some(&"pipe".into()))?;
    pipe.get("host_statuses")?.as_array().cloned()
}

/// Envoy omits values that are zero or false. Until the first health check of a host has a result, Envoy marks the host
/// as failed and as pending.
fn has_failed(host: &serde_json::Value) -> bool {
    host.pointer("/health_status/failed_active_health_check").is_some()
}

fn is_pending(host: &serde_json::Value) -> bool {
    host.pointer("/health_status/pending_active_hc").is_some()
}

/// Envoy's counters of its configuration files. Clusters count queries of the ground's address under the same names;
/// those are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct XdsCounters(BTreeMap<String, u64>);

/// The counters of attempts, acceptances, refusals, and sockets that could not be opened.
const FILTER: &str = "(update_attempt|update_success|update_rejected|update_failure|config_fail|config_reload|listener_create_failure\
     |key_rotation_failed|ssl_context_update_by_sds)$";
/// The counter of renewed certificates in the TLS contexts of listeners and clusters.
const CONTEXT_RENEWED: &str = "ssl_context_update_by_sds";

impl XdsCounters {
    /// Reads the counters. None if the admin interface does not respond.
    pub(super) fn read(admin: &Endpoint) -> Option<Self> {
        stats(admin, FILTER).map(|text| Self::parse(&text))
    }

    /// Reads lines of the admin interface: `NAME: VALUE`.
    pub(super) fn parse(text: &str) -> Self {
        let counters = text
            .lines()
            .filter_map(|line| line.rsplit_once(": "))
            .filter(|(name, _)| !name.starts_with("cluster.") || name.ends_with(CONTEXT_RENEWED))
            .filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?)));
        Self(counters.collect())
    }

    /// Returns the counters of refusals that are higher here than in `before`.
    pub(super) fn refused_since(&self, before: &Self) -> Vec<String> {
        // A file that is not YAML or not a file of Envoy's counts as a failure. A file with invalid content counts as
        // rejected.
        const REFUSALS: &[&str] =
            &["update_rejected", "update_failure", "config_fail", "listener_create_failure", "key_rotation_failed"];
        self.0
            .iter()
            .filter(|(name, value)| {
                REFUSALS.iter().any(|end| name.ends_with(end)) && **value > before.0.get(*name).copied().unwrap_or(0)
            })
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Returns true if a TLS context uses another certificate than in `before`.
    pub(super) fn renewed_since(&self, before: &Self) -> bool {
        self.0
            .iter()
            .any(|(name, value)| name.ends_with(CONTEXT_RENEWED) && *value > before.0.get(name).copied().unwrap_or(0))
    }

    /// Returns the number of acceptances and refusals since `before`.
    pub(super) fn settled_since(&self, before: &Self) -> u64 {
        const SETTLED: &[&str] = &["update_success", "update_rejected", "update_failure"];
        self.0
            .iter()
            .filter(|(name, _)| SETTLED.iter().any(|end| name.ends_with(end)))
            .map(|(name, value)| value.saturating_sub(before.0.get(name).copied().unwrap_or(0)))
            .sum()
    }
}

fn percent_encoded(text: &str) -> String {
    text.bytes()
        .map(|b| if b.is_ascii_alphanumeric() || b == b'_' { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grounds_that_fail_their_checks_are_left_out() {
        let pipe = |first: &str, second: &str| {
            format!(
                r#"{{"cluster_statuses": [{{"name": "warm"}}, {{"name": "pipe", "host_statuses": [
                {{"health_status": {{{first} "eds_health_status": "HEALTHY"}},
                  "address": {{"socket_address": {{"address": "192.0.2.1", "port_value": 8443}}}}}},
                {{"health_status": {{{second} "eds_health_status": "HEALTHY"}}, "priority": 1,
                  "address": {{"socket_address": {{"address": "2001:db8::1", "port_value": 443}}}}}}]}}]}}"#
            )
        };
        let failed = r#""failed_active_health_check": true,"#;
        let first = Passing { ground: 0, address: "192.0.2.1:8443".parse().unwrap() };
        let second = Passing { ground: 1, address: "[2001:db8::1]:443".parse().unwrap() };
        assert_eq!(passing(&pipe("", "")), Some(vec![first, second.clone()]));
        assert_eq!(passing(&pipe(failed, "")), Some(vec![second]));
        assert_eq!(passing(&pipe(failed, failed)), Some(vec![]));
        assert!(all_failed(&pipe(failed, failed)) && !all_failed(&pipe(failed, "")));
        let pending = format!("{failed} \"pending_active_hc\": true,");
        assert!(!all_failed(&pipe(failed, &pending)));
        // The name of a ground has no address yet.
        for unknown in [r#"{"cluster_statuses": []}"#, r#"{"cluster_statuses": [{"name": "pipe"}]}"#] {
            assert_eq!(passing(unknown), None);
            assert!(!all_failed(unknown));
        }
    }
}
