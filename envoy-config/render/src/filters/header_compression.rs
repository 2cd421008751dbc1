//! header-compression: compresses headers between the two boxes of a pair.

use header_compression_config::{Config, Role as End};
use longhaul_config::{Remote, Role, RoleName, WhenDown};

use super::{Context, Filter, Position};
use crate::RenderError;

pub(super) const FILTER: Filter = Filter {
    name: "header-compression",
    needed: |settings| !settings.role.is_alone(),
    is_native_only: false,
    capabilities: &[
        "proxy_get_header_map_pairs",
        "proxy_get_property",
        "proxy_on_response_headers",
        "proxy_set_header_map_pairs",
    ],
    positions: &[
        Position {
            name: "header-compression",
            roles: &[RoleName::Remote, RoleName::Ground],
            configuration: of_this_end,
        },
        // The filter decompresses like a ground before origins that a remote reaches itself. A request may have been
        // compressed for the pipe before a retry bypasses the ground.
        Position { name: "header-compression-direct", roles: &[RoleName::Remote], configuration: of_the_direct_way },
    ],
};

fn of_this_end(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let (role, packs) = match &context.settings.role {
        Role::Edge => return Ok(None),
        Role::Remote(remote) => (End::Remote, remote.pack_headers),
        Role::Ground(ground) => (End::Ground, ground.pack_headers),
    };
    if packs { json(role, context) } else { Ok(None) }
}

fn of_the_direct_way(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    match context.settings.role {
        Role::Remote(Remote { when_down: WhenDown::Direct, pack_headers: true, .. }) => json(End::Ground, context),
        _ => Ok(None),
    }
}

fn json(role: End, context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let clients = context.settings.limits.clients;
    Ok(Some(serde_json::to_string(&Config { clients, ..Config::of(role) })?))
}
