//! filter-calls: notes which worker each way from Envoy's main thread leads to, for filters' own requests. Only filters of the native
//! module start those on the main thread.

use longhaul_config::RoleName;

use super::{Context, Filter, Position};
use crate::RenderError;

const NAME: &str = "filter-calls";

pub(crate) const FILTER: Filter = Filter {
    name: NAME,
    needed: |_| false,
    is_native_only: true,
    capabilities: &[],
    positions: &[Position { name: NAME, roles: &[RoleName::Edge, RoleName::Remote, RoleName::Ground], configuration }],
};

/// The file is there with and without requests of filters. Otherwise, a change of `rewrite` would remove it while Envoy still drains
/// the listener that reads it, and Envoy would refuse the next change.
#[expect(clippy::unnecessary_wraps, reason = "the type of every filter's function")]
fn configuration(_: &Context<'_>) -> Result<Option<String>, RenderError> {
    Ok(Some("{}".to_owned()))
}
