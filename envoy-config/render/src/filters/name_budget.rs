//! name-budget: bounds the new names of one client, wherever origins' names are looked up.

use longhaul_config::RoleName;
use name_budget::Config;

use super::{Context, Filter, Position};
use crate::RenderError;

pub(super) const FILTER: Filter = Filter {
    name: "name-budget",
    needed: |settings| settings.role.reaches_origins(),
    is_native_only: false,
    capabilities: &["proxy_get_header_map_value", "proxy_get_shared_data", "proxy_set_shared_data"],
    positions: &[Position {
        name: "name-budget",
        roles: &[RoleName::Edge, RoleName::Remote, RoleName::Ground],
        configuration,
    }],
};

fn configuration(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let settings = context.settings;
    if !settings.role.reaches_origins() {
        return Ok(None);
    }
    Ok(Some(serde_json::to_string(&Config { per_client: settings.limits.new_names_per_client })?))
}
