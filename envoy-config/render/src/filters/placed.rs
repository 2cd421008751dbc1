//! One position of a filter, as the template `ecds_filter.yaml` renders it.

use std::path::PathBuf;

use serde::Serialize;

use super::{Filter, Position};
use crate::artifacts::{Artifacts, Module};

/// The callbacks, host calls and WASI calls that every filter may use: its runtime, configuration, metrics and log, and
/// the head of a request. Envoy returns an error for a call that neither this list nor the filter's own list allows.
pub(super) const OF_EVERY_FILTER: &[&str] = &[
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_write",
    "proc_exit",
    "proxy_define_metric",
    "proxy_get_buffer_bytes",
    "proxy_increment_metric",
    "proxy_log",
    "proxy_on_configure",
    "proxy_on_context_create",
    "proxy_on_delete",
    "proxy_on_memory_allocate",
    "proxy_on_request_headers",
    "proxy_on_vm_start",
    "proxy_send_local_response",
    "random_get",
];

/// One position of a filter, with the copy of the module that Envoy loads.
#[derive(Debug, Serialize)]
pub(crate) struct PlacedFilter {
    name: &'static str,
    /// The filter in the native module, if that one runs it.
    native: Option<&'static str>,
    /// The path of the built module.
    #[serde(skip)]
    pub(crate) from: PathBuf,
    /// The path of the copy, below the root. Its name holds the module's hash, because Envoy reads a module again only
    /// under another name.
    pub(crate) module_file: String,
    /// The absolute path of the copy.
    module: String,
    /// The configuration as JSON, as the filter reads it.
    configuration: String,
    /// The allowed callbacks and calls, in alphabetical order.
    capabilities: Vec<&'static str>,
}

impl PlacedFilter {
    pub(super) fn new(
        filter: &Filter,
        position: &Position,
        artifacts: &Artifacts,
        module: &Module<'_>,
        configuration: String,
    ) -> Self {
        let short = |sha256: &str| sha256.chars().take(16).collect::<String>();
        let (from, module_file) = match module {
            Module::Native(native) => (&native.path, format!("filters/longhaul_filters-{}.so", short(&native.sha256))),
            Module::Wasm(wasm) => (&wasm.path, format!("filters/{}-{}.wasm", filter.name, short(&wasm.sha256))),
        };
        Self {
            name: position.name,
            native: artifacts.native.is_some().then_some(filter.name),
            from: from.clone(),
            module: artifacts.root.join(&module_file).display().to_string(),
            module_file,
            configuration,
            capabilities: filter.allowed(),
        }
    }

    /// Returns the path of its file, below the root.
    pub(crate) fn file(&self) -> String {
        format!("ecds/{}.yaml", self.name)
    }
}
