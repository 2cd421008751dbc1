//! Renders the resources with which another control plane runs url-rewrite in its own gateway.
//!
//! The gateway moves the URLs of pages to an edge, and everything else stays at the edge. The filter's configuration
//! and its host calls come from the same definitions as in the files of an edge.

use longhaul_config::Settings;
use longhaul_derive::{Derived, TargetKind};
use serde::Serialize;
use url_rewriting::Limits;

use super::engine::{Engine, RenderError};
use super::filters;
use super::filters::url_rewrite::filter_config;
use super::tree::RenderedTree;

/// A control plane of gateways that run on Envoy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlPlane {
    /// Envoy Gateway, with the wasm module.
    EnvoyGateway,
    /// Envoy Gateway, with the native module.
    EnvoyGatewayNative,
    /// Istio.
    Istio,
}

/// The gateway, as its control plane names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// The namespace of the Gateway. The resources stand in it, too.
    pub namespace: String,
    /// The name of the Gateway.
    pub name: String,
    /// The names of those of its listeners that serve pages.
    pub listeners: Vec<String>,
    /// The reference of the image with the filter, without a scheme. The native module is in the image of Longhaul.
    pub image: String,
}

/// The reason why a configuration has no form in a gateway.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The configuration is that of one end of a pair.
    #[error(
        "`role: {0}` has no form in a gateway, which runs url-rewrite only. Name the file of the edge that clients of the gateway reach: `role: edge`"
    )]
    Role(&'static str),
    /// No URL moves.
    #[error("no URL of a page would move to this edge: {0}")]
    NothingMoves(String),
    /// A template failed.
    #[error(transparent)]
    Render(#[from] RenderError),
}

/// A feature that a gateway lacks.
#[derive(Debug, Serialize)]
pub(crate) struct Limit {
    /// The feature of Longhaul.
    pub what: &'static str,
    /// The state of it in Envoy Gateway.
    pub envoy_gateway: &'static str,
    /// The state of it in Istio.
    pub istio: &'static str,
}

/// The features that neither control plane can express. `deploy/gateway/README.md` has the same table.
const LIMITS: &[Limit] = &[
    Limit {
        what: "a filter is replaced while connections stay (ECDS)",
        envoy_gateway: "no: a change replaces the listener, and connections drain",
        istio: "Istio has its own way",
    },
    Limit {
        what: "the cache hop: prefetched and cached objects",
        envoy_gateway: "no: there is no second hop behind the filter",
        istio: "no: there is no second hop behind the filter",
    },
    Limit { what: "requests for moved objects", envoy_gateway: "at the edge only", istio: "at the edge only" },
    Limit { what: "DNS steering", envoy_gateway: "at the edge only", istio: "at the edge only" },
    Limit { what: "a pair: header compression, bundling, warm connections", envoy_gateway: "no", istio: "no" },
    Limit {
        what: "TLS by name, without termination",
        envoy_gateway: "not in the same listener",
        istio: "not in the same listener",
    },
];

/// The version of Envoy whose interface the native module has.
const ENVOY: &str = "1.40.0";

/// The folder of the image in the container of the proxy.
const MODULE_FOLDER: &str = "/longhaul";

/// The values that the templates use, as `v`.
#[derive(Serialize)]
struct View<'a> {
    plane: &'static str,
    plane_name: &'static str,
    version: &'static str,
    namespace: &'a str,
    gateway: &'a str,
    /// The names that Envoy Gateway gives to Envoy's listeners.
    listeners: Vec<String>,
    image: &'a str,
    module_folder: &'static str,
    envoy: &'static str,
    configuration: Vec<Key>,
    configuration_json: String,
    capabilities: Vec<&'static str>,
    limits: Vec<LimitThere>,
}

/// A key of the filter's configuration. JSON is YAML.
#[derive(Serialize)]
struct Key {
    name: String,
    value: String,
}

/// A feature, and the state of it in one control plane.
#[derive(Serialize)]
struct LimitThere {
    what: &'static str,
    there: &'static str,
}

impl Gateway {
    /// Renders the resources. It does no I/O.
    ///
    /// # Errors
    /// A configuration that has no form in a gateway, or a template that does not match its values.
    pub fn render(
        &self,
        settings: &Settings,
        derived: &Derived,
        plane: ControlPlane,
    ) -> Result<RenderedTree, GatewayError> {
        if !settings.role.is_alone() {
            return Err(GatewayError::Role(settings.role.name().as_str()));
        }
        if derived.target.kind == TargetKind::Nothing {
            return Err(GatewayError::NothingMoves(derived.target.reason.clone()));
        }
        let (name, plane_name) = plane.names();
        let configuration = configuration(settings, derived).map_err(RenderError::from)?;
        let view = View {
            plane: name,
            plane_name,
            version: env!("CARGO_PKG_VERSION"),
            namespace: &self.namespace,
            gateway: &self.name,
            listeners: self
                .listeners
                .iter()
                .map(|listener| format!("{}/{}/{listener}", self.namespace, self.name))
                .collect(),
            image: &self.image,
            module_folder: MODULE_FOLDER,
            envoy: ENVOY,
            configuration_json: serde_json::Value::Object(configuration.clone()).to_string(),
            configuration: configuration
                .iter()
                .map(|(name, value)| Key { name: name.clone(), value: value.to_string() })
                .collect(),
            capabilities: filters::capabilities_in_a_gateway(),
            limits: LIMITS
                .iter()
                .map(|limit| LimitThere {
                    what: limit.what,
                    there: match plane {
                        ControlPlane::EnvoyGateway | ControlPlane::EnvoyGatewayNative => limit.envoy_gateway,
                        ControlPlane::Istio => limit.istio,
                    },
                })
                .collect(),
        };
        let engine = Engine::new()?;
        let mut tree = RenderedTree::default();
        for (file, template) in plane.files() {
            tree.put(*file, engine.render(template, &view)?);
        }
        Ok(tree)
    }
}

impl ControlPlane {
    /// Returns the name of the command line, and the name in sentences.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::EnvoyGateway => ("envoy-gateway", "Envoy Gateway"),
            Self::EnvoyGatewayNative => ("envoy-gateway --engine native", "Envoy Gateway"),
            Self::Istio => ("istio", "Istio"),
        }
    }

    /// Returns the files, each with its template.
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::EnvoyGateway => &[("extension.yaml", "gateway/extension.yaml"), ("patch.yaml", "gateway/patch.yaml")],
            Self::EnvoyGatewayNative => &[("native.yaml", "gateway/native.yaml")],
            Self::Istio => &[("wasm-plugin.yaml", "gateway/wasm_plugin.yaml")],
        }
    }
}

/// Returns the configuration of the filter without the keys that have their defaults. A gateway has no cache behind
/// the filter, so nothing is prefetched.
fn configuration(
    settings: &Settings,
    derived: &Derived,
) -> Result<serde_json::Map<String, serde_json::Value>, serde_json::Error> {
    let mut config = filter_config(settings, derived);
    config.prefetch = false;
    let has_default_limits = config.limits == Limits::default();
    let serde_json::Value::Object(mut keys) = serde_json::to_value(config)? else {
        return Ok(serde_json::Map::new());
    };
    for key in ["prefetch", "account"] {
        keys.remove(key);
    }
    if has_default_limits {
        keys.remove("limits");
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_the_table_of_limits() {
        let readme = std::fs::read_to_string("../../deploy/gateway/README.md").unwrap();
        for limit in LIMITS {
            let row = format!("| {} | {} | {} |", limit.what, limit.envoy_gateway, limit.istio);
            assert!(readme.contains(&row), "deploy/gateway/README.md lacks the row\n{row}");
        }
    }
}
