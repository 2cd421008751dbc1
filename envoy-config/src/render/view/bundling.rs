//! The bundling filter of a pair.

use std::time::Duration;

use page_flights::config::STORE_BYTES;
use page_flights::{Config, Role as End};

use super::transport;
use super::wasm::WasmFilter;
use crate::config::{Role, Settings};
use crate::derive::Derived;
use crate::render::{Artifacts, RenderError};

/// What the filter may call and be called with, beside what every filter may.
const CAPABILITIES: &[&str] = &[
    "proxy_continue_stream",
    "proxy_get_header_map_pairs",
    "proxy_get_property",
    "proxy_get_shared_data",
    "proxy_http_call",
    "proxy_on_http_call_response",
    "proxy_on_response_body",
    "proxy_on_response_headers",
    "proxy_on_tick",
    "proxy_remove_header_map_value",
    "proxy_replace_header_map_value",
    "proxy_set_effective_context",
    "proxy_set_shared_data",
    "proxy_set_tick_period_milliseconds",
];

/// The filter of this end; none for a box alone, or where `page.bundle` is off.
pub(super) fn filter(
    settings: &Settings,
    derived: &Derived,
    artifacts: &Artifacts,
) -> Result<Option<WasmFilter>, RenderError> {
    let Some(module) = artifacts.bundling.as_ref().filter(|_| settings.page.bundle) else {
        return Ok(None);
    };
    // At the remote the filter's own requests go to the ground, and there to origins.
    let (role, cluster) = match settings.role {
        Role::Edge => return Ok(None),
        Role::Remote(_) => (End::Remote, "pipe"),
        Role::Ground(_) => (End::Ground, "fetch"),
    };
    let link = &settings.link;
    let configuration = serde_json::to_string(&Config {
        role,
        cluster: cluster.to_owned(),
        rtt_ms: u64::try_from(link.rtt.as_millis()).unwrap_or(u64::MAX),
        down: link.down.bytes_in(Duration::from_secs(1)),
        up: link.up.bytes_in(Duration::from_secs(1)),
        store_bytes: STORE_BYTES,
        // A stream buffers as much of a response as its window lets in of a request.
        buffer_bytes: usize::try_from(transport::stream_window_bytes(derived)).unwrap_or(usize::MAX),
    })?;
    Ok(Some(WasmFilter::new("bundling", &artifacts.root, module, configuration, CAPABILITIES)))
}
