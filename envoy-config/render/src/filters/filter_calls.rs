//! filter-calls: notes which worker each way from Envoy's main thread leads to, for filters' own requests. Only filters of the native
//! module start those on the main thread.

use longhaul_config::RoleName;

use super::{Context, Filter, Position, bundling};
use crate::RenderError;

const NAME: &str = "filter-calls";

pub(crate) const FILTER: Filter = Filter {
    name: NAME,
    needed: |_| false,
    is_native_only: true,
    capabilities: &[],
    positions: &[Position { name: NAME, roles: &[RoleName::Edge, RoleName::Remote, RoleName::Ground], configuration }],
};

#[expect(clippy::unnecessary_wraps, reason = "the type of every filter's function")]
fn configuration(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let settings = context.settings;
    let bundles = settings.role.name() != RoleName::Edge && bundling::is_needed(settings);
    Ok((settings.fetches() || bundles).then(|| "{}".to_owned()))
}
