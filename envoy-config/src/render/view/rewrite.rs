//! The url-rewrite filter's configuration.

use url_mapping::Level as FilterLevel;
use url_rewriting::config::{Budget, Targets};
use url_rewriting::{Config, Limits};

use super::super::artifacts::{AccessLog, Artifacts, WasmModule};
use super::super::engine::RenderError;
use super::wasm::WasmFilter;
use crate::config::units::Bytes;
use crate::config::{Level, Settings};
use crate::derive::{Derived, TargetKind};

/// What the filter may call and be called with, beside what every filter may.
const CAPABILITIES: &[&str] = &[
    "proxy_add_header_map_value",
    "proxy_close_stream",
    "proxy_get_header_map_pairs",
    "proxy_get_property",
    "proxy_get_shared_data",
    "proxy_http_call",
    "proxy_on_http_call_response",
    "proxy_on_response_body",
    "proxy_on_response_headers",
    "proxy_on_response_trailers",
    "proxy_on_tick",
    "proxy_remove_header_map_value",
    "proxy_replace_header_map_value",
    "proxy_set_buffer_bytes",
    "proxy_set_effective_context",
    "proxy_set_property",
    "proxy_set_shared_data",
    "proxy_set_tick_period_milliseconds",
];

pub(super) fn filter(
    settings: &Settings,
    derived: &Derived,
    artifacts: &Artifacts,
    module: &WasmModule,
) -> Result<WasmFilter, RenderError> {
    let account = artifacts.access_log != AccessLog::Off;
    let configuration = serde_json::to_string(&Config { account, ..filter_config(settings, derived) })?;
    Ok(WasmFilter::new("url-rewrite", &artifacts.root, module, configuration, CAPABILITIES))
}

/// What the filter is told: rendered for Envoy, and asked by `longhaul explain`, so that both decide alike.
pub fn filter_config(settings: &Settings, derived: &Derived) -> Config {
    let target = &derived.target;
    let of = |kind| if target.kind == kind { target.authorities.clone() } else { Vec::new() };
    Config {
        targets: Targets { https: of(TargetKind::Https), http: of(TargetKind::Http) },
        own: settings.own_authorities(),
        level: match settings.rewrite.level {
            Level::Off => FilterLevel::Off,
            Level::Safe => FilterLevel::Safe,
            Level::Full => FilterLevel::Full,
        },
        exclude: settings.rewrite.exclude.iter().map(ToString::to_string).collect(),
        ports: settings.upstream.ports.iter().copied().collect(),
        prefetch: settings.prefetches(),
        inline: settings.inlines().then(|| Budget {
            object_bytes: to_usize(derived.inline_object.value),
            page_bytes: to_usize(derived.inline_page.value),
        }),
        limits: Limits { page_memory_bytes: to_usize(settings.limits.page_memory), ..Limits::default() },
        account: false,
    }
}

fn to_usize(bytes: Bytes) -> usize {
    usize::try_from(bytes.0).unwrap_or(usize::MAX)
}
