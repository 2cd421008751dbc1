//! The table of filters. All code that names every filter iterates over [`Filter::ALL`]: the search for modules, the
//! watched files, the rendered `ecds/*.yaml`.
//!
//! A filter has one row in [`Filter::ALL`] and one file beside this one. The row holds the facts that are the same at each
//! of its positions. A position is one place in Envoy's filter chains, with a configuration of its own. The templates
//! place the positions (`part/filter.yaml`).
//!
//! | filter | edge | remote | ground | hop |
//! |---|---|---|---|---|
//! | url-rewrite | yes | | yes | outer |
//! | name-budget | yes | where it goes to origins itself | yes | inner, direct, tunnel |
//! | object-reader | yes | | yes | outer, with the native engine |
//! | filter-calls | yes | yes | yes | `filter_calls`, with the native engine |
//! | link-share | | yes | yes | outer, upgrades and hops of bytes, with the native engine |
//! | header-compression | | yes | yes | the pipe's cluster at the remote, outer at the ground; direct: the remote's own way to origins |
//! | bundling | | yes | yes | outer |

mod bundling;
mod filter_calls;
mod header_compression;
pub(super) mod link_share;
mod name_budget;
mod object_reader;
mod placed;
pub(super) mod url_rewrite;

use std::collections::BTreeMap;

use longhaul_config::{AccessLog, RoleName, Settings};
use longhaul_derive::Derived;

use super::artifacts::{Artifacts, Module};
use super::engine::RenderError;
use super::weighing::Weighing;
use placed::OF_EVERY_FILTER;
pub(super) use placed::PlacedFilter;
pub(super) use url_rewrite::capabilities_in_a_gateway;

/// A filter: a name in the native module, and a wasm module unless it is in the native one alone.
#[derive(Debug)]
pub struct Filter {
    /// The name in files, with hyphens: `name-budget`.
    pub name: &'static str,
    /// Returns true for settings that cannot run without the module. With other settings a missing filter is left out.
    pub needed: fn(&Settings) -> bool,
    /// True if no wasm module has it.
    pub is_native_only: bool,
    /// The callbacks, host calls and WASI calls beside those of every filter.
    capabilities: &'static [&'static str],
    /// The positions of the filter, at least one.
    positions: &'static [Position],
}

/// One place of a filter in Envoy's filter chains.
#[derive(Debug)]
struct Position {
    /// The unique name in Envoy: of the resource, of its file in `ecds/`, and of the plugin's root. The modules of the
    /// two ends of a pair may share it.
    name: &'static str,
    /// The roles that may have it.
    roles: &'static [RoleName],
    /// Returns the configuration as JSON, from the type that the filter reads. None leaves the position out.
    configuration: fn(&Context<'_>) -> Result<Option<String>, RenderError>,
}

/// The facts that a configuration may depend on.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
struct Context<'a> {
    settings: &'a Settings,
    derived: &'a Derived,
    /// The weights of clients of the link.
    weighing: &'a Weighing,
    /// True if an access log shows the account of a page.
    logs_pages: bool,
    /// True if images are recoded.
    recodes_images: bool,
    /// True if the program caches objects on this box.
    caches_objects: bool,
    /// The name by which the ground remembers what this cache holds.
    cache_name: Option<&'a str>,
    /// True if url-rewrite leads requests past the cache. With native filters, the reader of the cache does.
    is_bypassed: bool,
}

impl Filter {
    /// Every filter.
    pub const ALL: &[Self] = &[
        url_rewrite::FILTER,
        name_budget::FILTER,
        object_reader::FILTER,
        link_share::FILTER,
        filter_calls::FILTER,
        header_compression::FILTER,
        bundling::GROUND,
        bundling::REMOTE,
    ];

    /// Returns the file name of the built module: `name_budget.wasm`.
    pub fn file(&self) -> String {
        format!("{}.wasm", self.name.replace('-', "_"))
    }

    /// Returns the environment variable that names the module: `LONGHAUL_NAME_BUDGET`.
    pub fn variable(&self) -> String {
        format!("LONGHAUL_{}", self.name.replace('-', "_").to_ascii_uppercase())
    }

    /// Returns the callbacks and calls that the filter may use, in alphabetical order.
    fn allowed(&self) -> Vec<&'static str> {
        let mut allowed = [OF_EVERY_FILTER, self.capabilities].concat();
        allowed.sort_unstable();
        allowed
    }
}

/// Every position by name, so that a template can test each. None: the position is left out.
pub(super) type Positions = BTreeMap<&'static str, Option<PlacedFilter>>;

/// Returns the positions of the filters in one configuration.
///
/// # Errors
/// A configuration that cannot be written as JSON, which is a bug in this program.
pub(super) fn positions(
    settings: &Settings,
    derived: &Derived,
    artifacts: &Artifacts,
) -> Result<Positions, RenderError> {
    let logs_pages = artifacts.logs_pages(settings) || artifacts.access_log != AccessLog::Off;
    let recodes_images = super::images::sockets(settings, derived, artifacts).is_some();
    let caches_objects = super::objects::is_on(settings, artifacts);
    let is_bypassed = artifacts.native.is_none() && caches_objects;
    let cache_name = artifacts.cache_name.as_deref();
    let weighing = &artifacts.weighing;
    let context =
        Context { settings, derived, weighing, logs_pages, recodes_images, caches_objects, cache_name, is_bypassed };
    let mut positions = Positions::new();
    for filter in Filter::ALL {
        for position in filter.positions {
            let at = filter.at(position, &context, artifacts)?;
            let known = positions.entry(position.name).or_default();
            *known = known.take().or(at);
        }
    }
    Ok(positions)
}

impl Filter {
    /// Returns the module that runs the filter. None: there is none, and the filter is left out.
    fn module<'a>(&self, artifacts: &'a Artifacts) -> Option<Module<'a>> {
        let wasm = artifacts.modules.get(self.name);
        match &artifacts.native {
            // A filter whose wasm module is missing is left out with both engines.
            Some(native) => (self.is_native_only || wasm.is_some()).then_some(Module::Native(native)),
            None => wasm.map(Module::Wasm),
        }
    }

    fn at(
        &self,
        position: &Position,
        context: &Context<'_>,
        artifacts: &Artifacts,
    ) -> Result<Option<PlacedFilter>, RenderError> {
        let Some(module) = self.module(artifacts) else { return Ok(None) };
        if !position.roles.contains(&context.settings.role.name()) {
            return Ok(None);
        }
        let configuration = (position.configuration)(context)?;
        Ok(configuration.map(|json| PlacedFilter::new(self, position, artifacts, &module, json)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_lists_are_sorted() {
        let names: BTreeSet<&str> = Filter::ALL.iter().map(|filter| filter.name).collect();
        assert_eq!(names.len(), Filter::ALL.len());
        // No role has two positions of one name.
        let positions = || Filter::ALL.iter().flat_map(|filter| filter.positions);
        let places = positions().flat_map(|at| at.roles.iter().map(|role| (at.name, role.as_str())));
        assert_eq!(places.clone().collect::<BTreeSet<_>>().len(), places.count());
        for filter in Filter::ALL {
            assert!(filter.capabilities.is_sorted(), "{}", filter.name);
            assert!(filter.positions.iter().all(|position| !position.roles.is_empty()), "{}", filter.name);
        }
    }

    #[test]
    fn files_and_variables_follow_from_the_name() {
        let budget = Filter::ALL.iter().find(|filter| filter.name == "name-budget").unwrap();
        assert_eq!(budget.file(), "name_budget.wasm");
        assert_eq!(budget.variable(), "LONGHAUL_NAME_BUDGET");
    }
}
