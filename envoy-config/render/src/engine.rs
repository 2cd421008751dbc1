//! The template engine. A mistake in a template is an error, and never a silent gap in a security rule.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};
use serde::Serialize;

/// Rendering failed, because a template and the program do not match.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A template uses an undefined value, or is malformed.
    #[error("internal fault in a built-in template: {0:#}")]
    Template(#[from] minijinja::Error),
    /// The filter's configuration could not be written as JSON.
    #[error("internal fault: the filter's configuration cannot be written: {0}")]
    FilterConfig(#[from] serde_json::Error),
}

/// Every template, by the name that other templates include it by.
const TEMPLATES: &[(&str, &str)] = &[
    ("bootstrap.yaml", include_str!("../templates/bootstrap.yaml.j2")),
    ("rds_pipe.yaml", include_str!("../templates/rds_pipe.yaml.j2")),
    ("rds_direct.yaml", include_str!("../templates/rds_direct.yaml.j2")),
    ("rds_remote.yaml", include_str!("../templates/rds_remote.yaml.j2")),
    ("part/bind.yaml", include_str!("../templates/part/bind.yaml.j2")),
    ("part/challenge_listener.yaml", include_str!("../templates/part/challenge_listener.yaml.j2")),
    ("part/challenge_routes.yaml", include_str!("../templates/part/challenge_routes.yaml.j2")),
    ("rds_challenges.yaml", include_str!("../templates/rds_challenges.yaml.j2")),
    ("part/fetch_listener.yaml", include_str!("../templates/part/fetch_listener.yaml.j2")),
    ("part/ground_listeners.yaml", include_str!("../templates/part/ground_listeners.yaml.j2")),
    ("part/objects_route.yaml", include_str!("../templates/part/objects_route.yaml.j2")),
    ("part/parents.yaml", include_str!("../templates/part/parents.yaml.j2")),
    ("part/other_end.yaml", include_str!("../templates/part/other_end.yaml.j2")),
    ("part/other_ports_clusters.yaml", include_str!("../templates/part/other_ports_clusters.yaml.j2")),
    ("part/other_ports_listener.yaml", include_str!("../templates/part/other_ports_listener.yaml.j2")),
    ("part/outcome.yaml", include_str!("../templates/part/outcome.yaml.j2")),
    ("part/pipe_routes.yaml", include_str!("../templates/part/pipe_routes.yaml.j2")),
    ("part/remote_inner.yaml", include_str!("../templates/part/remote_inner.yaml.j2")),
    ("part/side_cluster.yaml", include_str!("../templates/part/side_cluster.yaml.j2")),
    ("part/side_listener.yaml", include_str!("../templates/part/side_listener.yaml.j2")),
    ("part/side_retry.yaml", include_str!("../templates/part/side_retry.yaml.j2")),
    ("part/upgrade_end.yaml", include_str!("../templates/part/upgrade_end.yaml.j2")),
    ("part/refused_handshakes.yaml", include_str!("../templates/part/refused_handshakes.yaml.j2")),
    ("part/pair_tls.yaml", include_str!("../templates/part/pair_tls.yaml.j2")),
    ("part/bytes_listener.yaml", include_str!("../templates/part/bytes_listener.yaml.j2")),
    ("part/direct_listener.yaml", include_str!("../templates/part/direct_listener.yaml.j2")),
    ("part/remote_clusters.yaml", include_str!("../templates/part/remote_clusters.yaml.j2")),
    ("part/remote_filters.yaml", include_str!("../templates/part/remote_filters.yaml.j2")),
    ("part/remote_listeners.yaml", include_str!("../templates/part/remote_listeners.yaml.j2")),
    ("part/remote_replies.yaml", include_str!("../templates/part/remote_replies.yaml.j2")),
    ("cds.yaml", include_str!("../templates/cds.yaml.j2")),
    ("ecds_guard.yaml", include_str!("../templates/ecds_guard.yaml.j2")),
    ("gateway/extension.yaml", include_str!("../templates/gateway/extension.yaml.j2")),
    ("gateway/macros.yaml", include_str!("../templates/gateway/macros.yaml.j2")),
    ("gateway/native.yaml", include_str!("../templates/gateway/native.yaml.j2")),
    ("gateway/patch.yaml", include_str!("../templates/gateway/patch.yaml.j2")),
    ("gateway/wasm_plugin.yaml", include_str!("../templates/gateway/wasm_plugin.yaml.j2")),
    ("ecds_share.yaml", include_str!("../templates/ecds_share.yaml.j2")),
    ("ecds_filter.yaml", include_str!("../templates/ecds_filter.yaml.j2")),
    ("lds.yaml", include_str!("../templates/lds.yaml.j2")),
    ("rds_edge.yaml", include_str!("../templates/rds_edge.yaml.j2")),
    ("rds_inner.yaml", include_str!("../templates/rds_inner.yaml.j2")),
    ("rds_tunnel.yaml", include_str!("../templates/rds_tunnel.yaml.j2")),
    ("sds_authority.yaml", include_str!("../templates/sds_authority.yaml.j2")),
    ("sds.yaml", include_str!("../templates/sds.yaml.j2")),
    ("part/access_log.yaml", include_str!("../templates/part/access_log.yaml.j2")),
    ("part/access_log_tcp.yaml", include_str!("../templates/part/access_log_tcp.yaml.j2")),
    ("part/log_target.yaml", include_str!("../templates/part/log_target.yaml.j2")),
    ("part/requested.yaml", include_str!("../templates/part/requested.yaml.j2")),
    ("part/tracing.yaml", include_str!("../templates/part/tracing.yaml.j2")),
    ("part/changed.yaml", include_str!("../templates/part/changed.yaml.j2")),
    ("part/cdn_loop.yaml", include_str!("../templates/part/cdn_loop.yaml.j2")),
    ("part/client.yaml", include_str!("../templates/part/client.yaml.j2")),
    ("part/dns_cache.yaml", include_str!("../templates/part/dns_cache.yaml.j2")),
    ("part/edge_http.yaml", include_str!("../templates/part/edge_http.yaml.j2")),
    ("part/edge_filters.yaml", include_str!("../templates/part/edge_filters.yaml.j2")),
    ("part/edge_replies.yaml", include_str!("../templates/part/edge_replies.yaml.j2")),
    ("part/claims.yaml", include_str!("../templates/part/claims.yaml.j2")),
    ("part/no_guard.yaml", include_str!("../templates/part/no_guard.yaml.j2")),
    ("part/origin_replies.yaml", include_str!("../templates/part/origin_replies.yaml.j2")),
    ("part/origin_routes.yaml", include_str!("../templates/part/origin_routes.yaml.j2")),
    ("part/ours.yaml", include_str!("../templates/part/ours.yaml.j2")),
    ("part/accepted_by_origin.yaml", include_str!("../templates/part/accepted_by_origin.yaml.j2")),
    ("part/inner_filters.yaml", include_str!("../templates/part/inner_filters.yaml.j2")),
    ("part/inner_replies.yaml", include_str!("../templates/part/inner_replies.yaml.j2")),
    ("part/origin_claims.yaml", include_str!("../templates/part/origin_claims.yaml.j2")),
    ("part/resolve_and_guard.yaml", include_str!("../templates/part/resolve_and_guard.yaml.j2")),
    ("part/resolver.yaml", include_str!("../templates/part/resolver.yaml.j2")),
    ("part/odd_status.yaml", include_str!("../templates/part/odd_status.yaml.j2")),
    ("part/image_route.yaml", include_str!("../templates/part/image_route.yaml.j2")),
    ("part/calls_listener.yaml", include_str!("../templates/part/calls_listener.yaml.j2")),
    ("part/hop.yaml", include_str!("../templates/part/hop.yaml.j2")),
    ("part/hop_streams.yaml", include_str!("../templates/part/hop_streams.yaml.j2")),
    ("part/host_routes.yaml", include_str!("../templates/part/host_routes.yaml.j2")),
    ("part/untrue_when_compressed.yaml", include_str!("../templates/part/untrue_when_compressed.yaml.j2")),
    ("part/filter.yaml", include_str!("../templates/part/filter.yaml.j2")),
    ("part/share.yaml", include_str!("../templates/part/share.yaml.j2")),
    ("part/share_limit.yaml", include_str!("../templates/part/share_limit.yaml.j2")),
    ("part/is_text.yaml", include_str!("../templates/part/is_text.yaml.j2")),
    ("part/share_listeners.yaml", include_str!("../templates/part/share_listeners.yaml.j2")),
    ("part/share_of_client.yaml", include_str!("../templates/part/share_of_client.yaml.j2")),
    ("part/share_of_group.yaml", include_str!("../templates/part/share_of_group.yaml.j2")),
    ("part/share_action.yaml", include_str!("../templates/part/share_action.yaml.j2")),
    ("part/in_ranges.yaml", include_str!("../templates/part/in_ranges.yaml.j2")),
    ("part/bill.yaml", include_str!("../templates/part/bill.yaml.j2")),
    ("part/share_of_remote.yaml", include_str!("../templates/part/share_of_remote.yaml.j2")),
    ("part/tenant.yaml", include_str!("../templates/part/tenant.yaml.j2")),
    ("part/socket_options.yaml", include_str!("../templates/part/socket_options.yaml.j2")),
];

pub(super) struct Engine {
    environment: Environment<'static>,
}

impl Engine {
    pub(super) fn new() -> Result<Self, RenderError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // The engine would escape YAML templates as JSON because of their names. Here a template quotes with `| yaml`.
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        let syntax =
            SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build()?;
        environment.set_syntax(syntax);
        environment.add_filter("yaml", quoted);
        environment.add_filter("nest", nested);
        for (name, source) in TEMPLATES {
            environment.add_template(name, source)?;
        }
        Ok(Self { environment })
    }

    pub(super) fn render(&self, template: &str, view: &impl Serialize) -> Result<String, RenderError> {
        Ok(self.environment.get_template(template)?.render(context! { v => Value::from(Serde(view)) })?)
    }

    /// Renders like [`Self::render`], with one more value named `key`.
    pub(super) fn render_with(
        &self,
        template: &str,
        view: &impl Serialize,
        key: &'static str,
        value: &impl Serialize,
    ) -> Result<String, RenderError> {
        let both = Value::from_pairs([("v", Value::from(Serde(view))), (key, Value::from(Serde(value)))]);
        Ok(self.environment.get_template(template)?.render(both)?)
    }
}

/// Formats a string as a double-quoted YAML scalar. JSON strings are YAML strings, so no character of a path or a name
/// ends the scalar.
fn quoted(text: &str) -> Result<String, minijinja::Error> {
    serde_json::to_string(text)
        .map_err(|e| minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, "cannot be quoted").with_source(e))
}

/// Indents a block by `columns` and ends it with one line break, for use below a key.
fn nested(block: &str, columns: usize) -> String {
    let mut out = String::with_capacity(block.len() * 2);
    for line in block.trim_end().lines() {
        if !line.is_empty() {
            out.extend(std::iter::repeat_n(' ', columns));
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}
