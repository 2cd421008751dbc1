//! A filter as Envoy is told of it: where its module is, how it is configured, what it may call.

use std::path::Path;

use serde::Serialize;

use crate::render::artifacts::WasmModule;

/// Callbacks, host calls and WASI calls that every filter is allowed: its runtime, configuration, metrics and log, and the head
/// of a request. Envoy answers a call that neither this list nor the filter's own allows with an error.
const OF_EVERY_FILTER: &[&str] = &[
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
    /// In the order of the alphabet.
    capabilities: Vec<&'static str>,
}

impl WasmFilter {
    pub(super) fn new(
        name: &'static str,
        root: &Path,
        module: &WasmModule,
        configuration: String,
        own_capabilities: &[&'static str],
    ) -> Self {
        let mut capabilities = [OF_EVERY_FILTER, own_capabilities].concat();
        capabilities.sort_unstable();
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
