//! The name-budget filter, wherever origins' names are looked up.

use name_budget::Config;

use super::super::artifacts::Artifacts;
use super::super::engine::RenderError;
use super::wasm::WasmFilter;
use crate::config::Settings;

/// Callbacks, host calls and WASI calls the filter is allowed; Envoy answers any other with an error.
const CAPABILITIES: &[&str] = &[
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_write",
    "proc_exit",
    "proxy_define_metric",
    "proxy_get_buffer_bytes",
    "proxy_get_header_map_value",
    "proxy_get_shared_data",
    "proxy_increment_metric",
    "proxy_log",
    "proxy_on_configure",
    "proxy_on_context_create",
    "proxy_on_delete",
    "proxy_on_memory_allocate",
    "proxy_on_request_headers",
    "proxy_on_vm_start",
    "proxy_send_local_response",
    "proxy_set_shared_data",
    "random_get",
];

/// None without the module, and where nothing is looked up.
pub(super) fn filter(settings: &Settings, artifacts: &Artifacts) -> Result<Option<WasmFilter>, RenderError> {
    let Some(module) = artifacts.name_budget.as_ref().filter(|_| settings.role.reaches_origins()) else {
        return Ok(None);
    };
    let configuration = serde_json::to_string(&Config { per_client: settings.limits.new_names_per_client })?;
    Ok(Some(WasmFilter::new("name-budget", &artifacts.root, module, configuration, CAPABILITIES)))
}
