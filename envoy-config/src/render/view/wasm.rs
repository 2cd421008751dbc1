//! A filter as Envoy is told of it: where its module is, how it is configured, what it may call.

use std::path::Path;

use serde::Serialize;

use crate::render::artifacts::WasmModule;

/// One filter, and the copy of its module that Envoy loads.
#[derive(Debug, Serialize)]
pub(in super::super) struct WasmFilter {
    name: &'static str,
    /// Whose virtual machine, and whose shared values, it uses.
    vm: &'static str,
    /// Requests without this header pass it by.
    only_with: Option<&'static str>,
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
            vm: name,
            only_with: None,
            from: module.path.clone(),
            module: root.join(&module_file).display().to_string(),
            module_file,
            configuration,
            capabilities,
        }
    }

    /// The same in the virtual machine `vm`, with a copy of the module that bears its name.
    pub(super) fn in_vm(mut self, vm: &'static str, root: &Path) -> Self {
        self.module_file = self.module_file.replacen(self.name, vm, 1);
        self.module = root.join(&self.module_file).display().to_string();
        self.vm = vm;
        self
    }

    /// The same for requests that bear `header`.
    pub(super) fn only_with(mut self, header: &'static str) -> Self {
        self.only_with = Some(header);
        self
    }

    /// Its file below the root.
    pub(in super::super) fn file(&self) -> String {
        format!("ecds/{}.yaml", self.name)
    }
}
