//! url-rewrite: moves sub-resource URLs of pages to the proxy, and requests for them back.

use longhaul_config::{Family, Level, RoleName, Settings};
use longhaul_derive::{Derived, TargetKind};
use name_budget::marks;
use url_mapping::Level as FilterLevel;
use url_rewriting::config::Targets;
use url_rewriting::{Config, Limits};

use super::{Context, Filter, Position};
use crate::RenderError;

/// The calls for requests of the filter's own. A gateway has none of them.
const FETCHING: &[&str] = &[
    "proxy_http_call",
    "proxy_on_http_call_response",
    "proxy_on_tick",
    "proxy_set_effective_context",
    "proxy_set_tick_period_milliseconds",
];

pub(super) const FILTER: Filter = Filter {
    name: "url-rewrite",
    needed: |_| true,
    is_native_only: false,
    capabilities: &[
        "proxy_add_header_map_value",
        "proxy_close_stream",
        "proxy_get_header_map_pairs",
        "proxy_get_property",
        "proxy_http_call",
        "proxy_on_http_call_response",
        "proxy_on_response_body",
        "proxy_on_response_headers",
        "proxy_on_response_trailers",
        "proxy_on_tick",
        "proxy_remove_header_map_value",
        "proxy_replace_header_map_value",
        "proxy_set_buffer_bytes",
        "proxy_set_effective_context",
        "proxy_set_property",
        "proxy_set_tick_period_milliseconds",
    ],
    positions: &[Position {
        name: "url-rewrite",
        // In a pair, the ground rewrites.
        roles: &[RoleName::Edge, RoleName::Ground],
        configuration,
    }],
};

/// Returns the calls that the filter needs in a gateway, in alphabetical order.
pub(crate) fn capabilities_in_a_gateway() -> Vec<&'static str> {
    let mut allowed = FILTER.allowed();
    allowed.retain(|capability| !FETCHING.contains(capability));
    allowed
}

fn configuration(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let config = Config {
        account: context.logs_pages,
        bypass: context.is_bypassed,
        ..filter_config(context.settings, context.derived)
    };
    Ok(Some(serde_json::to_string(&config)?))
}

/// Returns the configuration of url-rewrite. Envoy and `longhaul explain` both use it, so that they decide alike.
pub fn filter_config(settings: &Settings, derived: &Derived) -> Config {
    let target = &derived.target;
    let of = |authorities: &[String], family: Family| {
        let local = settings.proxy.local_addresses(family);
        let only_at =
            if authorities.is_empty() { Vec::new() } else { local.map(std::string::ToString::to_string).collect() };
        match target.kind {
            TargetKind::Https => Targets { https: authorities.to_vec(), http: Vec::new(), only_at },
            TargetKind::Http => Targets { https: Vec::new(), http: authorities.to_vec(), only_at },
            TargetKind::Nothing => Targets::default(),
        }
    };
    let (ipv4, ipv6) = (of(&target.ipv4, Family::Ipv4), of(&target.ipv6, Family::Ipv6));
    let targets = if settings.listen.serves(Family::Ipv4) { ipv4 } else { ipv6.clone() };
    Config {
        ipv6_targets: Some(ipv6).filter(|ipv6| settings.listen.serves(Family::Ipv6) && *ipv6 != targets),
        targets,
        own: settings.own_authorities(),
        level: match settings.rewrite.level {
            Level::Off => FilterLevel::Off,
            Level::Safe => FilterLevel::Safe,
            Level::Full => FilterLevel::Full,
        },
        exclude: settings.rewrite.exclude.iter().map(ToString::to_string).collect(),
        ports: settings.upstream.ports.iter().copied().collect(),
        peer_fields: peer_fields(settings.role.name()),
        prefetch: settings.prefetches(),
        limits: Limits {
            page_memory_bytes: usize::try_from(settings.limits.page_memory.0).unwrap_or(usize::MAX),
            ..Limits::default()
        },
        account: false,
        bypass: false,
    }
}

/// Returns the fields that the remote sets on requests. A ground counts new names for each client of the remote.
fn peer_fields(role: RoleName) -> Vec<String> {
    if role == RoleName::Ground { vec![marks::CLIENT.to_owned()] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_gateway_the_filter_may_send_no_request_of_its_own() {
        let (everywhere, there) = (FILTER.allowed(), capabilities_in_a_gateway());
        assert!(FETCHING.is_sorted() && there.is_sorted());
        assert_eq!(there.len() + FETCHING.len(), everywhere.len());
        assert!(!there.contains(&"proxy_http_call") && there.contains(&"proxy_set_buffer_bytes"));
    }
}
