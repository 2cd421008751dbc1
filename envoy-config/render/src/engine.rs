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

/// Returns the templates of these names with their files.
macro_rules! templates {
    ($($name:literal,)*) => { &[$(($name, include_str!(concat!("../templates/", $name, ".j2"))),)*] };
}

/// Every template, by the name that other templates include it by.
const TEMPLATES: &[(&str, &str)] = templates![
    "bootstrap.yaml",
    "rds_pipe.yaml",
    "rds_direct.yaml",
    "rds_remote.yaml",
    "part/bind.yaml",
    "part/challenge_listener.yaml",
    "part/challenge_routes.yaml",
    "rds_challenges.yaml",
    "part/fetch_listener.yaml",
    "part/ground_listeners.yaml",
    "part/objects_route.yaml",
    "part/parents.yaml",
    "part/other_end.yaml",
    "part/other_ports_clusters.yaml",
    "part/other_ports_listener.yaml",
    "part/outcome.yaml",
    "part/pipe_routes.yaml",
    "part/remote_inner.yaml",
    "part/side_cluster.yaml",
    "part/side_listener.yaml",
    "part/side_retry.yaml",
    "part/upgrade_end.yaml",
    "part/refused_handshakes.yaml",
    "part/pair_tls.yaml",
    "part/bytes_listener.yaml",
    "part/direct_listener.yaml",
    "part/remote_clusters.yaml",
    "part/remote_filters.yaml",
    "part/remote_listeners.yaml",
    "part/remote_replies.yaml",
    "cds.yaml",
    "ecds_guard.yaml",
    "gateway/extension.yaml",
    "gateway/macros.yaml",
    "gateway/native.yaml",
    "gateway/patch.yaml",
    "gateway/wasm_plugin.yaml",
    "ecds_share.yaml",
    "ecds_filter.yaml",
    "lds.yaml",
    "rds_edge.yaml",
    "rds_inner.yaml",
    "rds_tunnel.yaml",
    "sds_authority.yaml",
    "sds.yaml",
    "part/access_log.yaml",
    "part/access_log_tcp.yaml",
    "part/log_target.yaml",
    "part/requested.yaml",
    "part/tracing.yaml",
    "part/changed.yaml",
    "part/cdn_loop.yaml",
    "part/client.yaml",
    "part/dns_cache.yaml",
    "part/edge_http.yaml",
    "part/edge_filters.yaml",
    "part/edge_replies.yaml",
    "part/claims.yaml",
    "part/no_guard.yaml",
    "part/origin_replies.yaml",
    "part/origin_routes.yaml",
    "part/ours.yaml",
    "part/accepted_by_origin.yaml",
    "part/inner_filters.yaml",
    "part/inner_replies.yaml",
    "part/origin_claims.yaml",
    "part/resolve_and_guard.yaml",
    "part/resolver.yaml",
    "part/odd_status.yaml",
    "part/image_route.yaml",
    "part/calls_listener.yaml",
    "part/hop.yaml",
    "part/hop_streams.yaml",
    "part/host_routes.yaml",
    "part/untrue_when_compressed.yaml",
    "part/filter.yaml",
    "part/share.yaml",
    "part/share_limit.yaml",
    "part/is_text.yaml",
    "part/share_listeners.yaml",
    "part/share_of_client.yaml",
    "part/share_of_group.yaml",
    "part/share_action.yaml",
    "part/in_ranges.yaml",
    "part/bill.yaml",
    "part/share_of_remote.yaml",
    "part/tenant.yaml",
    "part/socket_options.yaml",
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
