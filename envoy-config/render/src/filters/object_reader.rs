//! object-reader: serves small fresh responses from the store of `longhaul-objects`. It reads files, so it is in the native
//! module alone.

use longhaul_config::RoleName;

use super::{Context, Filter, Position};
use crate::{RenderError, objects};

pub(super) const FILTER: Filter = Filter {
    name: "object-reader",
    needed: |_| false,
    is_native_only: true,
    capabilities: &[],
    positions: &[Position { name: "object-reader", roles: &[RoleName::Edge, RoleName::Ground], configuration }],
};

fn configuration(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    Ok(objects::reader(context.settings, context.derived.capacity.objects, context.recodes_images)
        .map(|config| serde_json::to_string(&config))
        .transpose()?)
}
