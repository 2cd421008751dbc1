//! link-share: the order in which the bytes of clients cross the link. One order holds for all workers, so it is in the native
//! module alone. With wasm filters, Envoy's own filter shares the link (`part/share_limit.yaml`).

use std::collections::BTreeSet;

use link_share::config::WeightConfig;
use link_share::{Config, Direction, LinkConfig};
use longhaul_config::{Ground, PipeTransport, Role, RoleName, Settings};
use longhaul_derive::{CongestionControl, Derived, MultipathUse};

use super::{Context, Filter, Position};
use crate::RenderError;
use crate::weighing::{Weighing, names_and_patterns};
use crate::weights::Weights;

pub(crate) const FILTER: Filter = Filter {
    name: link_share::NAME,
    needed: |_| false,
    is_native_only: true,
    capabilities: &[],
    positions: &[Position { name: link_share::NAME, roles: &[RoleName::Remote, RoleName::Ground], configuration }],
};

fn configuration(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let settings = context.settings;
    let limit = context.derived.neighbours.sent_by(&settings.role);
    let weighing = context.weighing;
    let link = |name: String, whole: Option<u64>, weights: &Weights| {
        let percent = u64::from(weighing.carried.get(&name).copied().unwrap_or(100));
        let bytes_per_second = whole.map(|whole| (whole * percent / 100).max(1));
        LinkConfig { name, bytes_per_second, weights: weighed(weights) }
    };
    let (direction, links) = match (&settings.role, limit) {
        (Role::Ground(ground), Some(limit)) => {
            let of_remote = |name: String| {
                let most = weighing.most_sent(limit, Some(&name));
                let weights = weighing.weights.get(&name).cloned().unwrap_or_default();
                link(name, Some(most), &weights)
            };
            (Direction::Response, names_of(ground, weighing).map(of_remote).collect())
        }
        // All remotes in one order: no rate is shared, and a stream waits for its own connection alone (D50).
        (Role::Ground(_), None) => (Direction::Response, vec![link(String::new(), None, &Weights::default())]),
        (Role::Remote(_) | Role::Edge, Some(limit)) => {
            let weights = Weights::of(&settings.clients, &weighing.slow);
            (Direction::Request, vec![link(String::new(), Some(weighing.most_sent(limit, None)), &weights)])
        }
        (Role::Remote(_) | Role::Edge, None) => return Ok(None),
    };
    let ports: BTreeSet<u16> = match &settings.role {
        Role::Remote(remote) => remote.grounds.iter().map(|ground| ground.port).collect(),
        Role::Ground(_) | Role::Edge => BTreeSet::new(),
    };
    let renewed = renewed(settings, context.derived).map(str::to_owned);
    Ok(Some(serde_json::to_string(&Config { direction, links, ports: ports.into_iter().collect(), renewed })?))
}

/// Returns the congestion control that connections over the link start again before it pauses: BBR, at a ground that keeps its queue
/// short. Without a limit BBR finds the rate, and needs its pause. With Multipath TCP, `multipath-sockets` changes it. QUIC has a
/// congestion control of its own.
fn renewed<'a>(settings: &Settings, derived: &'a Derived) -> Option<&'a str> {
    let CongestionControl::Named(name) = &derived.congestion_control.value else { return None };
    let Role::Ground(ground) = &settings.role else { return None };
    let keeps_short = derived.neighbours.sent_by(&settings.role).is_some();
    let is_plain_tcp = !matches!(derived.multipath, MultipathUse::Accepts(_)) && ground.transport == PipeTransport::H2;
    (keeps_short && is_plain_tcp && name.starts_with("bbr")).then_some(name)
}

/// Returns the names of the links of a ground. The first link that has the name of a remote counts, so patterns come behind the
/// remotes that have reported.
fn names_of(ground: &Ground, weighing: &Weighing) -> impl Iterator<Item = String> {
    let [named, patterns] = names_and_patterns(&ground.remotes);
    let heard = weighing.weights.keys().chain(weighing.rates.keys()).chain(weighing.carried.keys());
    let reported: BTreeSet<&String> = heard.collect();
    let reported: Vec<String> = reported.into_iter().filter(|name| !named.contains(name)).cloned().collect();
    named.into_iter().chain(reported).chain(patterns)
}

fn weighed(weights: &Weights) -> Vec<WeightConfig> {
    weights.0.iter().map(|group| WeightConfig { tenths: group.tenths, ranges: group.ranges.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use longhaul_derive::HostFacts;

    use super::*;

    #[test]
    fn bbr_starts_again_at_a_ground_that_limits_connections_of_plain_tcp() {
        let host = HostFacts { multipath: true, ..HostFacts::unknown() };
        let pem = concat!(env!("CARGO_MANIFEST_DIR"), "/../longhaul/tests/config/files/pep");
        for (role, link, split, more, expected) in [
            ("ground", "fill: auto", "peer: [ship.example]", "", Some("bbr")),
            ("ground", "fill: off", "peer: [ship.example]", "", None),
            ("ground", "fill: auto", "peer: [ship.example], multipath: on", "", None),
            ("ground", "fill: auto", "peer: [ship.example], transport: h3", "", None),
            ("ground", "fill: auto", "peer: [ship.example]", "transport: { congestion_control: cubic }", None),
            ("remote", "fill: auto", "peer: 203.0.113.5:8443", "proxy: { addresses: [192.0.2.2] }", None),
        ] {
            let text = format!(
                "role: {role}\nlink: {{ rtt: 600ms, down: 2mbit, up: 1mbit, {link} }}\nupstream: {{ resolvers: [192.0.2.53] }}\n\
                 split: {{ {split}, cert: {pem}.pem, key: {pem}.key, ca: {pem}.pem }}\n{more}\n"
            );
            let loaded = longhaul_config::load_text("test.yaml".as_ref(), text.clone()).unwrap();
            let derived = longhaul_derive::derive(&loaded.settings, &host);
            assert_eq!(renewed(&loaded.settings, &derived), expected, "{text}");
        }
    }
}
