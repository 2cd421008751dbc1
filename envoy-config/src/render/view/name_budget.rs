//! The name-budget filter, wherever origins' names are looked up.

use name_budget::Config;

use super::super::artifacts::Artifacts;
use super::super::engine::RenderError;
use super::wasm::WasmFilter;
use crate::config::Settings;

/// What the filter may call and be called with, beside what every filter may.
const CAPABILITIES: &[&str] = &["proxy_get_header_map_value", "proxy_get_shared_data", "proxy_set_shared_data"];

/// None without the module, and where nothing is looked up.
pub(super) fn filter(settings: &Settings, artifacts: &Artifacts) -> Result<Option<WasmFilter>, RenderError> {
    let Some(module) = artifacts.name_budget.as_ref().filter(|_| settings.role.reaches_origins()) else {
        return Ok(None);
    };
    let configuration = serde_json::to_string(&Config { per_client: settings.limits.new_names_per_client })?;
    Ok(Some(WasmFilter::new("name-budget", &artifacts.root, module, configuration, CAPABILITIES)))
}
