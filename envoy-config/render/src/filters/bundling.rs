//! bundling: sends objects of pages over a pair's link before browsers request them. It also encodes pages there. Each
//! end has a module of its own, because the remote needs a quarter of the code.

use std::time::Duration;

use longhaul_config::{RoleName, Settings};
use page_flights::config::STORE_BYTES;
use page_flights::{Config, Role as End};

use super::{Context, Filter, Position};
use crate::RenderError;

pub(super) const GROUND: Filter = Filter {
    name: "bundling",
    needed: |settings| is_needed(settings) && !settings.role.meets_clients(),
    is_native_only: false,
    capabilities: CAPABILITIES,
    positions: &[position(&[RoleName::Ground])],
};

pub(super) const REMOTE: Filter = Filter {
    name: "bundling-remote",
    needed: |settings| is_needed(settings) && settings.role.stands_beside_clients(),
    is_native_only: false,
    capabilities: CAPABILITIES,
    positions: &[position(&[RoleName::Remote])],
};

fn is_needed(settings: &Settings) -> bool {
    settings.page.bundle || settings.sends_deltas()
}

const fn position(roles: &'static [RoleName]) -> Position {
    Position { name: "bundling", roles, configuration }
}

const CAPABILITIES: &[&str] = &[
    "proxy_close_stream",
    "proxy_continue_stream",
    "proxy_get_header_map_pairs",
    "proxy_get_property",
    "proxy_get_shared_data",
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
    "proxy_set_shared_data",
    "proxy_set_tick_period_milliseconds",
];

fn configuration(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let settings = context.settings;
    // A remote sends the filter's own requests to the ground. The ground sends its own to origins.
    let (role, cluster) = match settings.role.name() {
        RoleName::Edge => return Ok(None),
        RoleName::Remote => (End::Remote, "pipe"),
        RoleName::Ground => (End::Ground, "fetch"),
    };
    let link = &settings.link;
    Ok(Some(serde_json::to_string(&Config {
        role,
        cluster: cluster.to_owned(),
        rtt_ms: u64::try_from(link.rtt.as_millis()).unwrap_or(u64::MAX),
        down: link.down.bytes_in(Duration::from_secs(1)),
        up: link.up.bytes_in(Duration::from_secs(1)),
        store_bytes: STORE_BYTES,
        // Envoy's stream buffer holds as much of a response as the stream window admits of a request.
        flights: settings.page.bundle,
        deltas: settings.sends_deltas(),
        caches: role == End::Remote && context.caches_objects,
        cache_name: context.cache_name.map(ToOwned::to_owned),
        // Only pages of flights are read.
        names: (role == End::Ground && settings.dns.push && settings.page.bundle).then(|| "pushed".to_owned()),
        buffer_bytes: usize::try_from(context.derived.bounds.stream_buffer).unwrap_or(usize::MAX),
    })?))
}
