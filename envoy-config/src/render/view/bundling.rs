//! The bundling filter of a pair.

use std::time::Duration;

use serde_json::json;

use super::transport;
use super::wasm::WasmFilter;
use crate::config::{Role, Settings};
use crate::derive::Derived;
use crate::render::Artifacts;

/// Callbacks, host calls and WASI calls the filter is allowed; Envoy answers any other with an error.
const CAPABILITIES: &[&str] = &[
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_write",
    "proc_exit",
    "proxy_continue_stream",
    "proxy_define_metric",
    "proxy_get_buffer_bytes",
    "proxy_get_header_map_pairs",
    "proxy_get_property",
    "proxy_get_shared_data",
    "proxy_http_call",
    "proxy_increment_metric",
    "proxy_log",
    "proxy_on_configure",
    "proxy_on_context_create",
    "proxy_on_delete",
    "proxy_on_http_call_response",
    "proxy_on_memory_allocate",
    "proxy_on_request_headers",
    "proxy_on_response_body",
    "proxy_on_response_headers",
    "proxy_on_tick",
    "proxy_on_vm_start",
    "proxy_remove_header_map_value",
    "proxy_replace_header_map_value",
    "proxy_send_local_response",
    "proxy_set_effective_context",
    "proxy_set_shared_data",
    "proxy_set_tick_period_milliseconds",
    "random_get",
];

/// The filter of this end; none for a box alone, or where `page.bundle` is off.
pub(super) fn filter(settings: &Settings, derived: &Derived, artifacts: &Artifacts) -> Option<WasmFilter> {
    let module = artifacts.bundling.as_ref().filter(|_| settings.page.bundle)?;
    // At the near end our own requests go to the far end, and there to origins.
    let (role, cluster) = match settings.role {
        Role::Edge => return None,
        Role::Remote(_) => ("remote", "pipe"),
        Role::Ground(_) => ("ground", "fetch"),
    };
    let link = &settings.link;
    let configuration = json!({
        "role": role,
        "cluster": cluster,
        "rtt_ms": link.rtt.as_millis(),
        "down": link.down.bytes_in(Duration::from_secs(1)),
        "up": link.up.bytes_in(Duration::from_secs(1)),
        // Of an answer a stream buffers as much as its window lets in of a request.
        "buffer_bytes": transport::stream_window_bytes(derived),
    });
    Some(WasmFilter::new("bundling", &artifacts.root, module, configuration.to_string(), CAPABILITIES))
}
