//! The cache-admission filter, at its three positions.

use cache_admission::Rules;
use cache_admission::{Config, Position, marks};

use super::super::artifacts::Artifacts;
use super::super::engine::RenderError;
use super::wasm::WasmFilter;

/// Callbacks, host calls and WASI calls the filter is allowed; Envoy answers any other with an error.
const CAPABILITIES: &[&str] = &[
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_write",
    "proc_exit",
    "proxy_close_stream",
    "proxy_define_metric",
    "proxy_get_buffer_bytes",
    "proxy_get_header_map_pairs",
    "proxy_get_shared_data",
    "proxy_increment_metric",
    "proxy_log",
    "proxy_on_configure",
    "proxy_on_context_create",
    "proxy_on_delete",
    "proxy_on_memory_allocate",
    "proxy_on_request_headers",
    "proxy_on_response_body",
    "proxy_on_response_headers",
    "proxy_on_response_trailers",
    "proxy_on_vm_start",
    "proxy_remove_header_map_value",
    "proxy_replace_header_map_value",
    "proxy_send_local_response",
    "proxy_set_shared_data",
    "random_get",
];

/// The filters around a cache that takes bodies of at most `object_bytes`; none without the module.
pub(super) fn filters(
    artifacts: &Artifacts,
    rules: Rules<'_>,
    object_bytes: u64,
) -> Result<Option<Vec<WasmFilter>>, RenderError> {
    let Some(module) = &artifacts.cache_admission else { return Ok(None) };
    let filter = |name, at| -> Result<WasmFilter, RenderError> {
        let configuration = serde_json::to_string(&Config {
            at,
            admit: rules.admit,
            plain_fields: rules.plain.to_vec(),
            object_bytes,
        })?;
        let filter = WasmFilter::new(name, &artifacts.root, module, configuration, CAPABILITIES);
        Ok(filter.in_vm("cache-admission", &artifacts.root))
    };
    Ok(Some(vec![
        filter("cache-admission-client", Position::Client)?,
        filter("cache-admission-fetch", Position::Fetch)?,
        filter("cache-admission-origin", Position::Origin)?.only_with(marks::JUDGE),
    ]))
}
