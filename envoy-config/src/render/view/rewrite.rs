//! The url-rewrite filter's configuration.

use std::path::Path;

use serde::Serialize;
use serde_json::json;

use super::super::artifacts::WasmModule;
use super::super::engine::RenderError;
use crate::config::Settings;
use crate::derive::{Derived, TargetKind};

/// The filter as delivered.
#[derive(Debug, Serialize)]
pub(in super::super) struct UrlRewrite {
    /// Below the root; bears the hash of the module, because Envoy re-reads a module only under another name.
    pub(in super::super) module_file: String,
    module: String,
    /// JSON, as the filter reads it.
    configuration: String,
}

/// Callbacks, host calls and WASI calls the filter is allowed; Envoy answers any other with an error.
pub(super) const CAPABILITIES: &[&str] = &[
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_write",
    "malloc",
    "proc_exit",
    "proxy_add_header_map_value",
    "proxy_define_metric",
    "proxy_get_buffer_bytes",
    "proxy_get_current_time_nanoseconds",
    "proxy_get_header_map_pairs",
    "proxy_get_header_map_value",
    "proxy_get_property",
    "proxy_increment_metric",
    "proxy_log",
    "proxy_on_configure",
    "proxy_on_context_create",
    "proxy_on_delete",
    "proxy_on_done",
    "proxy_on_log",
    "proxy_on_memory_allocate",
    "proxy_on_request_headers",
    "proxy_on_response_body",
    "proxy_on_response_headers",
    "proxy_on_response_trailers",
    "proxy_on_vm_start",
    "proxy_record_metric",
    "proxy_remove_header_map_value",
    "proxy_replace_header_map_value",
    "proxy_send_local_response",
    "proxy_set_buffer_bytes",
    "proxy_set_header_map_pairs",
    "random_get",
];

/// Longest URL considered; longer ones are left alone (and most servers refuse them).
const URL_BYTES: u32 = 8192;
/// Candidates of one `srcset`.
const SRCSET_CANDIDATES: u32 = 256;
/// Style sheets in style attributes in documents in attributes.
const NESTING: u32 = 4;
/// How much longer than the original a page may become.
const OUTPUT_GROWTH_BYTES: u32 = 8 << 20;

impl UrlRewrite {
    pub(super) fn new(
        settings: &Settings,
        derived: &Derived,
        root: &Path,
        module: &WasmModule,
    ) -> Result<Self, RenderError> {
        let hash: String = module.sha256.chars().take(16).collect();
        let module_file = format!("filters/url-rewrite-{hash}.wasm");
        let target = &derived.target;
        let of = |kind| if target.kind == kind { target.authorities.as_slice() } else { &[] };
        let exclude: Vec<String> = settings.rewrite.exclude.iter().map(ToString::to_string).collect();
        let configuration = serde_json::to_string(&json!({
            "targets": { "https": of(TargetKind::Https), "http": of(TargetKind::Http) },
            "own": settings.own_authorities(),
            "level": settings.rewrite.level.as_str(),
            "exclude": exclude,
            "ports": settings.upstream.ports,
            "limits": {
                "page_memory_bytes": settings.limits.page_memory.0,
                "url_bytes": URL_BYTES,
                "srcset_candidates": SRCSET_CANDIDATES,
                "nesting": NESTING,
                "output_growth_bytes": OUTPUT_GROWTH_BYTES,
            },
        }))?;
        Ok(Self { module: root.join(&module_file).display().to_string(), module_file, configuration })
    }
}
