//! The configuration of the filter, as the proxy's configuration file has it.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::Subscriber;
use crate::link::USUAL_TENTHS;

/// The filter's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The half of a stream that crosses the link behind the filter.
    pub direction: Direction,
    /// The links. Streams of a remote that is none of them are not limited.
    pub links: Vec<LinkConfig>,
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
    /// The name in the certificate of the other end. Empty at a box with one link, which has every stream.
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

    /// Returns the index of the link whose other end has one of `names`, which commas separate.
    #[must_use]
    pub fn link(&self, names: &str) -> Option<usize> {
        let has = |link: &LinkConfig| {
            link.name.is_empty() || names.split(',').any(|name| name.trim().eq_ignore_ascii_case(&link.name))
        };
        self.links.iter().position(has)
    }
}

impl LinkConfig {
    /// Returns the weight of a client, in tenths of the usual one.
    #[must_use]
    pub fn tenths(&self, client: Subscriber) -> u32 {
        let has = |group: &&WeightConfig| group.ranges.iter().any(|range| client.is_in(range));
        self.weights.iter().find(has).map_or(USUAL_TENTHS, |group| group.tenths)
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
        assert_eq!(config.link("Ship.example"), Some(0));
        assert_eq!(config.link("other.example, spiffe://example/boat"), Some(1));
        assert_eq!((config.link("ship.example.org"), config.link("")), (None, None));
        let remote = GROUND.replace("response", "request").replace("ship.example", "");
        assert_eq!(Config::from_json(remote.as_bytes()).unwrap().link(""), Some(0), "a remote has one link");
        let tenths = |client: &str| config.links[0].tenths(Subscriber::of(client.as_bytes()));
        assert_eq!((tenths("192.0.2.3"), tenths("192.0.2.77"), tenths("")), (40, 10, 10));
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
