//! The table of filters. Everything that names every filter iterates over [`FILTERS`]: the search for modules, the
//! options of the commands, the watched files, the rendered `ecds/*.yaml`.
//!
//! A filter has one row in [`FILTERS`] and one file beside this one. The row holds what is the same at each of its
//! positions; a position is one place in Envoy's chains of filters, with a configuration of its own. The templates say
//! where a position stands (`part/wasm_filter.yaml`).
//!
//! | filter | edge | remote | ground | hop |
//! |---|---|---|---|---|
//! | url-rewrite | yes | | yes | outer |
//! | cache-admission | yes | | yes | client: outer; fetch: `fetch`; origin: inner |
//! | name-budget | yes | where it goes to origins itself | yes | inner, direct, tunnel |
//! | header-compression | | yes | yes | the pipe's cluster at the remote, outer at the ground; direct: the remote's own way to origins |
//! | bundling | | yes | yes | outer |

mod bundling;
mod cache_admission;
mod header_compression;
mod name_budget;
mod url_rewrite;
mod wasm;

use std::collections::BTreeMap;

use super::artifacts::{AccessLog, Artifacts};
use super::engine::RenderError;
use crate::config::{RoleName, Settings};
use crate::derive::Derived;
pub use url_rewrite::filter_config;
pub(super) use wasm::WasmFilter;

/// Every filter, in the order in which commands list them.
pub const FILTERS: &[Filter] =
    &[url_rewrite::FILTER, cache_admission::FILTER, name_budget::FILTER, header_compression::FILTER, bundling::FILTER];

/// A filter: one wasm module.
#[derive(Debug)]
pub struct Filter {
    /// Its name in files and options, with hyphens: `name-budget`.
    pub name: &'static str,
    /// Its job, as a sentence with "The filter that" before it.
    pub purpose: &'static str,
    /// Settings with which nothing starts without the module. With others it is left out where it is missing.
    pub needed: fn(&Settings) -> bool,
    /// Callbacks, host calls and WASI calls beside those of every filter.
    capabilities: &'static [&'static str],
    /// At least one.
    positions: &'static [Position],
}

/// One place of a filter in Envoy's chains.
#[derive(Debug)]
struct Position {
    /// Its name in Envoy: of the resource, of its file in `ecds/`, and of the plugin's root. Unique.
    name: &'static str,
    /// Roles that may have it.
    roles: &'static [RoleName],
    /// Only requests with this header pass through it.
    only_with: Option<&'static str>,
    /// Uses the virtual machine, and so the shared values, of the filter's other positions.
    shares_vm: bool,
    /// The configuration as JSON, from the type that the filter reads. None leaves the position out.
    configuration: fn(&Context<'_>) -> Result<Option<String>, RenderError>,
}

/// The facts that a configuration may depend on.
struct Context<'a> {
    settings: &'a Settings,
    derived: &'a Derived,
    access_log: &'a AccessLog,
}

impl Filter {
    /// File name of the built module: `name_budget.wasm`.
    pub fn file(&self) -> String {
        format!("{}.wasm", self.name.replace('-', "_"))
    }

    /// Environment variable that names the module: `LONGHAUL_NAME_BUDGET`.
    pub fn variable(&self) -> String {
        format!("LONGHAUL_{}", self.name.replace('-', "_").to_ascii_uppercase())
    }
}

/// Every position by name, so that a template can test each. None: it is left out.
pub(super) type Positions = BTreeMap<&'static str, Option<WasmFilter>>;

/// The filters of one configuration.
///
/// # Errors
/// A configuration that cannot be written as JSON, which is a fault of this program.
pub(super) fn positions(
    settings: &Settings,
    derived: &Derived,
    artifacts: &Artifacts,
) -> Result<Positions, RenderError> {
    let context = Context { settings, derived, access_log: &artifacts.access_log };
    let mut positions = Positions::new();
    for filter in FILTERS {
        for position in filter.positions {
            positions.insert(position.name, filter.at(position, &context, artifacts)?);
        }
    }
    Ok(positions)
}

impl Filter {
    fn at(
        &self,
        position: &Position,
        context: &Context<'_>,
        artifacts: &Artifacts,
    ) -> Result<Option<WasmFilter>, RenderError> {
        let Some(module) = artifacts.modules.get(self.name) else { return Ok(None) };
        if !position.roles.contains(&context.settings.role.name()) {
            return Ok(None);
        }
        let configuration = (position.configuration)(context)?;
        Ok(configuration.map(|json| WasmFilter::new(self, position, &artifacts.root, module, json)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_lists_are_sorted() {
        let names: BTreeSet<&str> = FILTERS.iter().map(|filter| filter.name).collect();
        assert_eq!(names.len(), FILTERS.len());
        let positions: Vec<&str> = FILTERS.iter().flat_map(|filter| filter.positions).map(|at| at.name).collect();
        assert_eq!(positions.iter().collect::<BTreeSet<_>>().len(), positions.len());
        for filter in FILTERS {
            assert!(filter.capabilities.is_sorted(), "{}", filter.name);
            assert!(filter.positions.iter().all(|position| !position.roles.is_empty()), "{}", filter.name);
        }
    }

    #[test]
    fn files_and_variables_follow_from_the_name() {
        let budget = FILTERS.iter().find(|filter| filter.name == "name-budget").unwrap();
        assert_eq!(budget.file(), "name_budget.wasm");
        assert_eq!(budget.variable(), "LONGHAUL_NAME_BUDGET");
    }
}
