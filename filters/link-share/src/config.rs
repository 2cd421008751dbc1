//! The configuration of the filter, as the proxy's configuration file has it.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::Subscriber;

/// The filter's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The half of a stream that crosses the link behind the filter.
    pub direction: Direction,
    /// The links. Streams of a remote that is none of them are not limited.
    pub links: Vec<LinkConfig>,
    /// The ports of the grounds, at a remote. Large streams wait for bytes that the kernel has not sent there.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// The congestion control that connections start again (see [`crate::renewal`]), as the kernel names it. None: none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed: Option<String>,
}

/// The half of a stream that crosses the link behind the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Requests, at a remote.
    Request,
    /// Responses, at a ground.
    Response,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// The name in the certificate of the other end. Empty at a box with one link, which has every stream. With a `*` it is a
    /// pattern, and each name that it covers has a link of its own. `*.NAME` covers one label in front of a name. A `*` at the end
    /// covers every name that begins so.
    pub name: String,
    /// Bytes a second, with the headers of all layers. None: no limit, and streams wait only while their connection is full.
    pub bytes_per_second: Option<u64>,
    /// Clients with a weight of their own.
    pub weights: Vec<WeightConfig>,
}

/// Clients with a weight of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightConfig {
    /// The weight of each of them, in tenths of the usual one.
    pub tenths: u32,
    /// Their addresses.
    pub ranges: Vec<IpNet>,
}

/// The reason why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The configuration is not JSON of this form.
    #[error("link-share: the configuration is refused: {0}")]
    Json(#[from] serde_json::Error),
    /// A rate or a weight is zero.
    #[error("link-share: `{0}` is 0, expected at least 1")]
    Zero(&'static str),
}

impl Config {
    /// Reads JSON. Refuses unknown keys, and values that would hold streams for ever.
    pub fn from_json(json: &[u8]) -> Result<Self, Refused> {
        let config: Self = serde_json::from_slice(json)?;
        if config.links.iter().any(|link| link.bytes_per_second == Some(0)) {
            return Err(Refused::Zero("bytes_per_second"));
        }
        if config.links.iter().flat_map(|link| &link.weights).any(|weight| weight.tenths == 0) {
            return Err(Refused::Zero("tenths"));
        }
        Ok(config)
    }

    /// Returns the name of the link whose other end has one of `names`, which commas separate, and its configuration. The first
    /// link counts.
    #[must_use]
    pub fn link<'a>(&self, names: &'a str) -> Option<(&'a str, &LinkConfig)> {
        self.links.iter().find_map(|link| {
            let name =
                if link.name.is_empty() { Some("") } else { covered(&link.name, names.split(',').map(str::trim)) };
            Some((name?, link))
        })
    }
}

/// Returns the first of the `names` of a certificate that `listed` is or covers (see [`LinkConfig::name`]). Envoy admits other ends
/// by the same comparison, so it distinguishes upper and lower case.
#[must_use]
pub fn covered<'a>(listed: &str, mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if let Some(parent) = listed.strip_prefix("*.") {
        return names
            .find(|name| name.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest == parent));
    }
    match listed.strip_suffix('*') {
        Some(start) => names.find(|name| name.starts_with(start)),
        None => names.find(|name| *name == listed),
    }
}

impl LinkConfig {
    /// Returns the weight of a client, in tenths of the usual one.
    #[must_use]
    pub fn tenths(&self, client: Subscriber) -> u32 {
        let has = |group: &&WeightConfig| group.ranges.iter().any(|range| client.is_in(range));
        self.weights.iter().find(has).map_or(Subscriber::USUAL_TENTHS, |group| group.tenths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUND: &str = r#"{"direction":"response","links":[
        {"name":"ship.example","bytes_per_second":235000,"weights":[{"tenths":40,"ranges":["192.0.2.0/28"]}]},
        {"name":"spiffe://example/boat","bytes_per_second":1000,"weights":[]}]}"#;

    #[test]
    fn a_ground_has_a_link_for_each_remote_and_weights_for_each_link() {
        let config = Config::from_json(GROUND.as_bytes()).unwrap();
        let [ship, boat] = config.links.as_slice() else { panic!("two links") };
        assert_eq!(config.link("ship.example"), Some(("ship.example", ship)));
        assert_eq!(config.link("other.example, spiffe://example/boat"), Some(("spiffe://example/boat", boat)));
        assert_eq!((config.link("ship.example.org"), config.link("")), (None, None));
        let remote = Config::from_json(GROUND.replace("ship.example", "").as_bytes()).unwrap();
        assert_eq!(remote.link("").map(|(name, _)| name), Some(""), "a remote has one link");
        let tenths = |client: &str| config.links[0].tenths(Subscriber::of(client.as_bytes()));
        assert_eq!((tenths("192.0.2.3"), tenths("192.0.2.77"), tenths("")), (40, 10, 10));
    }

    #[test]
    fn each_name_that_a_pattern_covers_has_a_link_of_its_own() {
        let text =
            GROUND.replace("spiffe://example/boat", "*.ships.example").replace("ship.example", "a.ships.example");
        let config = Config::from_json(text.as_bytes()).unwrap();
        let rate = |names| config.link(names).map(|(name, link)| (name, link.bytes_per_second));
        assert_eq!(rate("a.ships.example"), Some(("a.ships.example", Some(235_000))), "the first link counts");
        assert_eq!(rate("x.test,b.ships.example"), Some(("b.ships.example", Some(1000))));
        for (listed, covers, leaves) in [
            ("*.ships.example", "b.ships.example", "c.b.ships.example"),
            ("*.ships.example", "b.ships.example", ".ships.example"),
            ("spiffe://example/ship/*", "spiffe://example/ship/7/a", "spiffe://example/ship"),
            ("ship.example", "ship.example", "Ship.example"),
        ] {
            assert_eq!(covered(listed, [leaves, covers].into_iter()), Some(covers), "{listed}");
        }
    }

    #[test]
    fn values_that_would_hold_streams_for_ever_are_refused() {
        for (old, new, reason) in [
            ("235000", "0", "`bytes_per_second` is 0"),
            ("40", "0", "`tenths` is 0"),
            ("\"weights\"", "\"weight\"", "unknown field"),
        ] {
            let refused = Config::from_json(GROUND.replacen(old, new, 1).as_bytes()).unwrap_err().to_string();
            assert!(refused.starts_with("link-share: ") && refused.contains(reason), "{refused}");
        }
    }
}
