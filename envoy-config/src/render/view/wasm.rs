//! A filter as Envoy is told of it: where its module is, how it is configured, what it may call.

use std::path::Path;

use serde::Serialize;

use crate::render::artifacts::WasmModule;

/// One filter, and the copy of its module that Envoy loads.
#[derive(Debug, Serialize)]
pub(in super::super) struct WasmFilter {
    name: &'static str,
    /// Where the module is now.
    #[serde(skip)]
    pub(in super::super) from: std::path::PathBuf,
    /// Below the root; bears the hash of the module, because Envoy re-reads a module only under another name.
    pub(in super::super) module_file: String,
    module: String,
    /// JSON, as the filter reads it.
    configuration: String,
    capabilities: &'static [&'static str],
}

impl WasmFilter {
    pub(super) fn new(
        name: &'static str,
        root: &Path,
        module: &WasmModule,
        configuration: String,
        capabilities: &'static [&'static str],
    ) -> Self {
        let hash: String = module.sha256.chars().take(16).collect();
        let module_file = format!("filters/{name}-{hash}.wasm");
        Self {
            name,
            from: module.path.clone(),
            module: root.join(&module_file).display().to_string(),
            module_file,
            configuration,
            capabilities,
        }
    }
}
