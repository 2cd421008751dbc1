//! The cache-admission filter, at its three positions.

use cache_admission::{Config, Position, Rules, marks};

use super::super::artifacts::Artifacts;
use super::super::engine::RenderError;
use super::wasm::WasmFilter;

/// What the filter may call and be called with, beside what every filter may.
const CAPABILITIES: &[&str] = &[
    "proxy_close_stream",
    "proxy_get_header_map_pairs",
    "proxy_get_shared_data",
    "proxy_on_response_body",
    "proxy_on_response_headers",
    "proxy_on_response_trailers",
    "proxy_remove_header_map_value",
    "proxy_replace_header_map_value",
    "proxy_set_shared_data",
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
