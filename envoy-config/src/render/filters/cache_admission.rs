//! cache-admission: decides which requests Envoy's cache sees, at three positions around it.

use cache_admission::{Config, Position as At, marks};

use super::{Context, Filter, Position};
use crate::config::{Cache, RoleName};
use crate::render::RenderError;
use crate::render::disk_cache::object_bytes;

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
            shares_vm: true,
            configuration: |context| configuration(context, At::Client),
        },
        Position {
            name: "cache-admission-fetch",
            roles: ROLES,
            only_with: None,
            shares_vm: true,
            configuration: |context| configuration(context, At::Fetch),
        },
        Position {
            name: "cache-admission-origin",
            roles: ROLES,
            only_with: Some(marks::JUDGE),
            shares_vm: true,
            configuration: |context| configuration(context, At::Origin),
        },
    ],
};

fn configuration(context: &Context<'_>, at: At) -> Result<Option<String>, RenderError> {
    let Cache::Disk { size, admit, plain_fields, .. } = &context.settings.cache else { return Ok(None) };
    Ok(Some(serde_json::to_string(&Config {
        at,
        admit: *admit,
        plain_fields: plain_fields.clone(),
        images: context.recodes_images && at != At::Origin,
        object_bytes: object_bytes(*size),
    })?))
}
