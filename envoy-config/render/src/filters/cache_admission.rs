//! cache-admission: decides which requests Envoy's cache sees, at three positions around it.

use cache_admission::{Config, Position as At, marks};
use longhaul_config::{Cache, RoleName};

use super::{CACHE_VM, Context, Filter, Position};
use crate::RenderError;
use crate::disk_cache::object_bytes;

const ROLES: &[RoleName] = &[RoleName::Edge, RoleName::Ground];

pub(super) const FILTER: Filter = Filter {
    name: "cache-admission",
    purpose: "decides which requests the cache sees",
    needed: |settings| matches!(settings.cache, Cache::Disk { .. }),
    capabilities: &[
        "proxy_close_stream",
        "proxy_get_header_map_pairs",
        "proxy_get_shared_data",
        "proxy_on_response_body",
        "proxy_on_response_headers",
        "proxy_on_response_trailers",
        "proxy_remove_header_map_value",
        "proxy_replace_header_map_value",
        "proxy_set_shared_data",
    ],
    positions: &[
        Position {
            name: "cache-admission-client",
            roles: ROLES,
            only_with: None,
            vm: Some(CACHE_VM),
            configuration: of_clients_alone,
        },
        Position {
            name: "cache-admission-fetch",
            roles: ROLES,
            only_with: None,
            vm: Some(CACHE_VM),
            configuration: |context| json(context, At::Fetch),
        },
        Position {
            name: "cache-admission-origin",
            roles: ROLES,
            only_with: Some(marks::JUDGE),
            vm: Some(CACHE_VM),
            configuration: |context| json(context, At::Origin),
        },
    ],
};

/// Returns the rules of admission for url-rewrite, which has the position `client` in itself: two filters would read the
/// same header lists. None without a cache, or without the module for the other positions.
pub(super) fn in_url_rewrite(context: &Context<'_>) -> Option<Config> {
    context.modules.contains_key(FILTER.name).then(|| config(context, At::Client)).flatten()
}

/// Returns the configuration of the position `client` as a filter of its own.
fn of_clients_alone(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    if context.modules.contains_key(super::url_rewrite::FILTER.name) { Ok(None) } else { json(context, At::Client) }
}

fn json(context: &Context<'_>, at: At) -> Result<Option<String>, RenderError> {
    Ok(config(context, at).map(|config| serde_json::to_string(&config)).transpose()?)
}

fn config(context: &Context<'_>, at: At) -> Option<Config> {
    let Cache::Disk { size, admit, plain_fields, .. } = &context.settings.cache else { return None };
    Some(Config {
        at,
        admit: *admit,
        plain_fields: plain_fields.clone(),
        images: context.recodes_images && at != At::Origin,
        object_bytes: object_bytes(*size),
    })
}
