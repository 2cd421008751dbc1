//! cache-admission: decides which requests Envoy's cache sees. It has two positions around the cache, and its rules of
//! admission are part of url-rewrite.

use cache_admission::{Config, Position as At, marks};
use longhaul_config::{Cache, CacheEngine, RoleName};

use super::{CACHE_VM, Context, Filter, Position};
use crate::RenderError;
use crate::disk_cache::object_bytes;

const ROLES: &[RoleName] = &[RoleName::Edge, RoleName::Ground];

pub(super) const FILTER: Filter = Filter {
    name: "cache-admission",
    needed: |settings| matches!(settings.cache, Cache::Disk { engine: CacheEngine::Envoy { .. }, .. }),
    capabilities: &[
        "proxy_close_stream",
        "proxy_get_header_map_pairs",
        "proxy_get_shared_data",
        "proxy_on_response_body",
        "proxy_on_response_headers",
        "proxy_remove_header_map_value",
        "proxy_replace_header_map_value",
        "proxy_set_shared_data",
    ],
    positions: &[
        Position {
            name: "cache-admission-fetch",
            roles: ROLES,
            only_with: None,
            vm: Some(CACHE_VM),
            configuration: of_fetches,
        },
        Position {
            name: "cache-admission-origin",
            roles: ROLES,
            only_with: Some(marks::JUDGE),
            vm: Some(CACHE_VM),
            configuration: of_the_judge,
        },
    ],
};

/// Returns the rules of admission, which url-rewrite applies: two filters would read the same header lists. None without a
/// cache, or without the module for the positions around it.
pub(super) fn rules(context: &Context<'_>) -> Option<Config> {
    let Cache::Disk { size, engine: CacheEngine::Envoy { admit, plain_fields }, .. } = &context.settings.cache else {
        return None;
    };
    context.admits.then(|| Config {
        admit: *admit,
        plain_fields: plain_fields.clone(),
        images: context.recodes_images,
        object_bytes: object_bytes(*size),
    })
}

fn of_fetches(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let Cache::Disk { engine: CacheEngine::Envoy { .. }, .. } = context.settings.cache else { return Ok(None) };
    Ok(Some(serde_json::to_string(&At::Fetch { images: context.recodes_images })?))
}

fn of_the_judge(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let Cache::Disk { size, engine: CacheEngine::Envoy { .. }, .. } = context.settings.cache else { return Ok(None) };
    Ok(Some(serde_json::to_string(&At::Origin { object_bytes: object_bytes(size) })?))
}
